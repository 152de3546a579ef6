//! What several test files share. Each of them compiles its own copy and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod conic;
mod factor;
pub mod given;
pub mod problems;
mod program;
