#![no_main]
use libfuzzer_sys::fuzz_target;
use multikernel_io::{LoadOptions, Purpose};
use multikernel_fuzz::load_one;

// Given matrices, for training or prediction, from .npy or .npz: the first byte chooses.
fuzz_target!(|data: &[u8]| {
    let (flags, data) = data.split_first().unwrap_or((&0, &[]));
    let name = if flags & 1 == 1 { "k.npz" } else { "k.npy" };
    let purpose = match flags & 6 {
        0 => Purpose::Training,
        2 => Purpose::Prediction { references: None, kernels: None },
        _ => Purpose::Prediction { references: Some(3), kernels: Some(2) },
    };
    let options = LoadOptions {
        gram: vec![name.into()],
        purpose,
        ..LoadOptions::default()
    };
    load_one(name, data, options);
});
