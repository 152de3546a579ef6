//! Kernel descriptions as a user might mistype them, in SPEC strings and TOML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use multikernel::kernel::KernelSpec;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(specs) = KernelSpec::parse(text) {
        for spec in specs.iter().take(20) {
            let again = KernelSpec::parse(&spec.to_string()).expect("what is printed can be read");
            assert_eq!(again, std::slice::from_ref(spec));
        }
    }
    let _ = KernelSpec::parse_toml(text);
});
