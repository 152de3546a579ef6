#![no_main]
use libfuzzer_sys::fuzz_target;
use multikernel_io::{LoadOptions, load_from};
use multikernel::data::{Targets, Task, infer_task};
use std::collections::BTreeMap;

// Labels as text (even first byte) or as an array, for one given matrix of as many samples as there are lines.
fuzz_target!(|data: &[u8]| {
    let (flags, data) = data.split_first().unwrap_or((&0, &[]));
    let name = if flags & 1 == 1 { "y.npy" } else { "y.txt" };
    let n = 1 + data.iter().filter(|&&b| b == b'\n').count() % 8;
    let sample = "x\n1\n2\n3\n4\n5\n6\n7\n8\n";
    let features: String = sample.lines().take(n + 1).flat_map(|l| [l, "\n"]).collect();
    let files = BTreeMap::from([
        ("x.csv".to_owned(), features.into_bytes()),
        (name.to_owned(), data.to_vec()),
    ]);
    let options = LoadOptions {
        features: vec!["x.csv".into()],
        labels: Some(name.into()),
        memory: Some(multikernel_fuzz::MEMORY),
        ..LoadOptions::default()
    };
    if let Ok(loaded) = load_from(&options, &files, &()) {
        let labels = loaded.labels.expect("a file of labels was given");
        let (task, why) = infer_task(Some(&labels));
        assert!(!why.is_empty());
        for task in [task, Task::Classify, Task::Regress, Task::OneClass] {
            if let Ok(Targets::Classes { names, index }) = Targets::new(Some(&labels), task, n) {
                assert!(index.iter().all(|&c| (c as usize) < names.len()));
                assert!(labels.class_index(&names).iter().all(Option::is_some));
            }
        }
    }
});
