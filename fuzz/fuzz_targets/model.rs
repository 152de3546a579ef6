//! Model files: whatever the bytes, an answer or an error; and a model that was read can be written and applied, and a stream's state
//! asked.
//!
//! The first byte chooses. 0: the bytes of a file follow. 1: its parts follow, with a zero byte after each: the header, a line
//! `name type count` for each tensor, the tensors' bytes. The container is then made here, so that a change in one part
//! does not break the others.
#![no_main]

use libfuzzer_sys::fuzz_target;
use multikernel::data::{Pairwise, View, ViewData, Views};
use multikernel::model::Model;
use multikernel::online::Online;

/// Tensors of parts hold at most so many numbers.
const MOST: usize = 512;

fuzz_target!(|data: &[u8]| {
    let (flags, data) = data.split_first().unwrap_or((&0, &[]));
    let mut file = match flags & 1 {
        0 => data.to_vec(),
        _ => container(data),
    };
    forget_checksum(&mut file);
    let Ok(model) = Model::from_bytes(&file) else {
        return;
    };
    if let Ok(online) = Online::from_bytes(&file) {
        let _ = online.predict(model.samples());
        let _ = online.to_bytes();
    }
    let written = model
        .to_bytes()
        .expect("a model that was read can be written");
    let again = Model::from_bytes(&written).expect("what was written can be read");
    // Decimal numbers of the header may be rounded when they are first read, and never after.
    assert!(written == again.to_bytes().expect("and written again"));
    if let Some(views) = samples(&model) {
        let views = model
            .arrange(views)
            .map_or_else(|_| samples(&model).unwrap(), |(views, _)| views);
        if let Ok(scores) = model.scores(&views) {
            let predictions = model.predictions(&scores);
            assert_eq!(predictions.len(), views.len());
            (0..views.len()).for_each(|i| {
                assert!(!predictions.text(i).is_empty() || !model.classes().is_empty())
            });
            let other = again.scores(&views).expect("the same model");
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&scores.values), bits(&other.values));
        }
    }
});

/// Under another name nobody compares it: every change would end there.
fn forget_checksum(file: &mut [u8]) {
    let name = b"checksum";
    while let Some(at) = file.windows(name.len()).position(|w| w == name) {
        file[at] = b'C';
    }
}

/// The samples of the model as new ones, and ones for given matrices.
fn samples(model: &Model) -> Option<Views> {
    let n = model.columns().len();
    let mut views: Vec<View> = model.samples().iter().cloned().collect();
    for (name, given) in model.needed_views() {
        if given {
            views.push(View {
                name: name.to_owned(),
                columns: Vec::new(),
                data: ViewData::Pairwise(Pairwise::new(n, n, vec![1.0; n * n]).ok()?),
            });
        }
    }
    Views::new(views).ok()
}

fn container(parts: &[u8]) -> Vec<u8> {
    let mut parts = parts.splitn(3, |&byte| byte == 0);
    let text = |part: Option<&[u8]>| String::from_utf8_lossy(part.unwrap_or_default()).into_owned();
    let (header, tensors) = (text(parts.next()), text(parts.next()));
    let mut directory = format!("{{\"__metadata__\":{{\"multikernel\":{}}}", json(&header));
    let mut end = 0;
    for line in tensors.lines() {
        let mut words = line.split(' ');
        let (name, kind) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let count = words
            .next()
            .and_then(|w| w.parse::<usize>().ok())
            .unwrap_or(0)
            .min(MOST);
        let size = match kind {
            "F64" | "U64" => 8,
            "F32" | "U32" => 4,
            _ => 1,
        };
        let start = end;
        end += size * count;
        directory += &format!(
            ",{}:{{\"dtype\":{},\"shape\":[{count}],\"data_offsets\":[{start},{end}]}}",
            json(name),
            json(kind)
        );
    }
    directory.push('}');
    let mut file = (directory.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(directory.as_bytes());
    let mut content = parts.next().unwrap_or_default().to_vec();
    content.resize(end, 0);
    file.append(&mut content);
    file
}

/// A string of JSON.
fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            _ if letter.is_control() => out += &format!("\\u{:04x}", u32::from(letter)),
            _ => out.push(letter),
        }
    }
    out + "\""
}
