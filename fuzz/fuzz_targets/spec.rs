//! What a user might mistype: kernel descriptions as SPEC strings and TOML, norms and losses. What is printed can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use multikernel::kernel::KernelSpec;
use multikernel::loss::LossSpec;
use multikernel::norm::NormSpec;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for specs in [KernelSpec::parse(text), KernelSpec::parse_toml(text)] {
        let Ok(specs) = specs else {
            continue;
        };
        let some = &specs[..specs.len().min(20)];
        for spec in some {
            let again = KernelSpec::parse(&spec.to_string()).expect("what is printed can be read");
            assert_eq!(again, std::slice::from_ref(spec));
        }
        let file = KernelSpec::to_toml(some);
        assert_eq!(
            KernelSpec::parse_toml(&file).expect("the file can be read"),
            some
        );
    }
    if let Ok(norm) = text.parse::<NormSpec>() {
        assert_eq!(
            norm.to_string()
                .parse::<NormSpec>()
                .expect("the norm can be read"),
            norm
        );
    }
    if let Ok(loss) = text.parse::<LossSpec>() {
        assert_eq!(
            loss.to_string()
                .parse::<LossSpec>()
                .expect("the loss can be read"),
            loss
        );
    }
});
