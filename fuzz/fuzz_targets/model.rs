//! Model files: whatever the bytes, an answer or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use multikernel::model::Model;

fuzz_target!(|data: &[u8]| {
    let _ = Model::from_bytes(data);
});
