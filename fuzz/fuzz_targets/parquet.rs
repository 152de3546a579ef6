#![no_main]
use libfuzzer_sys::fuzz_target;
use multikernel_fuzz::{features, load_one};
use std::sync::Once;

// The decoder's own panics are caught and become errors; libFuzzer's hook would abort before they are.
static HOOK: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|facts| {
            let foreign = facts.location().is_some_and(|l| !l.file().contains("multikernel"));
            if !foreign {
                eprintln!("{facts}");
                std::process::abort();
            }
        }));
    });
    let (flags, data) = data.split_first().unwrap_or((&0, &[]));
    let mut options = features("x.parquet");
    if flags & 1 == 1 {
        options.label_column = Some("y".into());
    }
    if flags & 2 == 2 {
        options.id_column = Some("id".into());
    }
    if flags & 4 == 4 {
        options.views = vec!["v=1..2".parse().unwrap()];
    }
    load_one("x.parquet", data, options);
});
