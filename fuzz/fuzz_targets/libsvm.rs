#![no_main]
use libfuzzer_sys::fuzz_target;
use multikernel_fuzz::{features, load_one};

fuzz_target!(|data: &[u8]| load_one("x.libsvm", data, features("x.libsvm")));
