//! The program `multikernel`.

fn main() {}
