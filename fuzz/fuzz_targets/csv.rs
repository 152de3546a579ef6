#![no_main]
use libfuzzer_sys::fuzz_target;
use multikernel_fuzz::{features, load_one};

// The first byte chooses options.
fuzz_target!(|data: &[u8]| {
    let (flags, data) = data.split_first().unwrap_or((&0, &[]));
    let name = if flags & 1 == 1 { "x.csv.gz" } else { "x.csv" };
    let mut options = features(name);
    if flags & 2 == 2 {
        options.label_column = Some("y".into());
    }
    if flags & 4 == 4 {
        options.id_column = Some("id".into());
    }
    if flags & 8 == 8 {
        options.views = vec!["v=a*|2..3".parse().unwrap(), "w=s".parse().unwrap()];
    }
    load_one(name, data, options);
});
