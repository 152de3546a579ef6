#![no_main]
use libfuzzer_sys::fuzz_target;
use multikernel_fuzz::{features, load_one};

fuzz_target!(|data: &[u8]| {
    let mut options = features("x.npz");
    options.label_column = Some("y".into());
    load_one("x.npz", data, options.clone());
    // Joined with itself: every row meets itself by its label.
    options.features.push("x.npz:b".into());
    options.id_column = options.label_column.take();
    load_one("x.npz", data, options);
});
