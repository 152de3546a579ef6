//! What the fuzz targets share: a file of any content is loaded, and whatever the answer is, it must be an answer.

use multikernel_io::{LoadOptions, load_from};
use multikernel::data::ViewData;
use std::collections::BTreeMap;

/// Reading within this much memory must succeed or be refused; run with a limit of libFuzzer above it.
pub const MEMORY: u64 = 64 << 20;

/// Loads one file in memory, and checks what a caller may rely on.
pub fn load_one(name: &str, content: &[u8], mut options: LoadOptions) {
    options.memory = Some(MEMORY);
    let files = BTreeMap::from([(name.to_owned(), content.to_vec())]);
    match load_from(&options, &files, &()) {
        Ok(data) => {
            let n = data.views.len();
            assert!(data.labels.is_none_or(|labels| labels.len() == n));
            assert!(data.views.ids().is_none_or(|ids| ids.len() == n));
            for view in &data.views {
                assert_eq!(view.data.len(), n);
                match &view.data {
                    ViewData::Dense(x) => assert!(x.values().iter().all(|v| v.is_finite())),
                    ViewData::Sparse(x) => assert!((0..n).all(|i| x.row(i).1.iter().all(|v| v.is_finite()))),
                    ViewData::Strings(_) => {}
                    ViewData::Pairwise(x) => assert!((0..n).all(|i| x.row(i).iter().all(|v| v.is_finite()))),
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Options with one file of features.
pub fn features(name: &str) -> LoadOptions {
    LoadOptions {
        features: vec![name.to_owned()],
        ..LoadOptions::default()
    }
}
