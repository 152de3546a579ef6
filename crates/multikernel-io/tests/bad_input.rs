//! Wrong input of every kind: one clear sentence that names the place, what was found and what would be right.

use multikernel::data::{Targets, Task};
use multikernel_io::{LoadOptions, Purpose, load, load_from};
use std::collections::BTreeMap;
use std::io::Write;

fn said(options: &LoadOptions, files: &[(&str, &[u8])]) -> String {
    let files: BTreeMap<String, Vec<u8>> = files
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect();
    let error = load_from(options, &files, &()).unwrap_err().to_string();
    assert!(!error.contains('\n'), "one sentence: {error}");
    error
}

/// The error for one file of features.
fn features(name: &str, bytes: &[u8]) -> String {
    let options = LoadOptions {
        features: vec![name.into()],
        memory: Some(1 << 30),
        ..LoadOptions::default()
    };
    said(&options, &[(name, bytes)])
}

/// The error for one file of given matrices.
fn given(name: &str, bytes: &[u8]) -> String {
    let options = LoadOptions {
        gram: vec![name.into()],
        ..LoadOptions::default()
    };
    said(&options, &[(name, bytes)])
}

/// The error for one file of labels beside two samples.
fn labels(name: &str, bytes: &[u8]) -> String {
    let options = LoadOptions {
        features: vec!["x.csv".into()],
        labels: Some(name.into()),
        ..LoadOptions::default()
    };
    let file = name.split(':').next().unwrap();
    said(&options, &[("x.csv", b"a\n1\n2\n"), (file, bytes)])
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(data);
    out
}

fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn npz(name: &str, bytes: &[u8], method: zip::CompressionMethod) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    zip.start_file(name, options).unwrap();
    zip.write_all(bytes).unwrap();
    zip.finish().unwrap().into_inner()
}

#[test]
fn not_a_number_and_infinity() {
    assert_eq!(
        features(
            "x.npy",
            &npy("<f4", "(2, 2)", &singles(&[1.0, 2.0, f32::NAN, 4.0]))
        ),
        "x.npy row 2, column 1: the value is NaN; give a finite number (remove the row, or fill in the missing value)"
    );
    assert_eq!(
        features("x.csv", b"a,b\n1,2\n3,inf\n"),
        "x.csv row 2 (line 3), column 'b': the value is inf; \
         give a finite number below 3.4e38 (remove the row, or fill in the missing value)"
    );
    assert!(features("x.csv", b"a,b\n1,1e300\n").contains("column 'b': the value is 1e300"));
    assert_eq!(
        features("x.svm", b"1 1:2 2:nan\n"),
        "x.svm line 1: '2:nan' has a value that is not finite; give a finite number below 3.4e38"
    );
    assert!(
        given("k.npy", &npy("<f4", "(1, 1)", &singles(&[f32::INFINITY])))
            .starts_with("k.npy row 1, column 1: the value is inf")
    );
    assert!(
        labels("y.npy", &npy("<f4", "(2,)", &singles(&[1.0, f32::NAN])))
            .starts_with("y.npy row 2: the value is NaN")
    );
    assert!(
        labels("y.txt", b"1\nnan\n")
            .starts_with("y.txt row 2: the label is nan; give a finite number")
    );
}

#[test]
fn cells_that_are_missing_or_text() {
    assert_eq!(
        features("x.csv", b"a,b\n1,2\n3,\n"),
        "x.csv row 2 (line 3), column 'b': the cell is empty; fill in the missing value, or remove the row or the column"
    );
    assert_eq!(
        features("x.csv", b"name,a,city\nann,2,rome\n"),
        "x.csv row 1 (line 2): columns 'name', 'city' hold text, where numbers are needed; \
         name them as label or id column, or cut views out of the other columns (view name=col1,col2)"
    );
    assert_eq!(
        features("x.csv", b"a,b\n1,2\n3,4O\n"),
        "x.csv row 2 (line 3), column 'b': '4O' is not a number; \
         give a number with a point for decimals, or cut views out of the other columns"
    );
    assert!(
        features("x.svm", b"1 a:2\n")
            .starts_with("x.svm line 1: 'a:2' has no index that is a whole number")
    );
    assert!(
        features("x.svm", b"1 0:2\n")
            .starts_with("x.svm line 1: '0:2' has the index 0; write index:value")
    );
    assert!(features("x.svm", b"1 1:2 1:3\n").contains("index 1 occurs twice"));
    assert!(
        features("x.svm", b"1 1:2\n1:3\n")
            .contains("line 2: the line has no label but earlier ones have one")
    );
    assert!(labels("y.txt", b"a\n\nb\n").starts_with("y.txt line 2: the label is missing"));
    assert!(labels("y.csv", b"l\na\n\"\"\n").starts_with("y.csv row 2: the label is missing"));
}

#[test]
fn ragged_rows() {
    assert_eq!(
        features("x.csv", b"a,b\n1,2\n3\n"),
        "x.csv row 2 (line 3): the row has 1 cells but the header names 2 columns; \
         give every row one cell for each column"
    );
    assert!(
        features("x.csv", b"a,b\n1,2,3\n")
            .contains("the row has 3 cells but the header names 2 columns")
    );
}

#[test]
fn headers_of_tables() {
    assert!(
        features("x.csv", b"1,2\n3,4\n")
            .contains("the first line holds numbers only ('1', '2'); the first line must name")
    );
    assert_eq!(
        features("x.csv", b"a,b\n"),
        "x.csv: there is a header but no row; give at least one sample"
    );
    assert!(features("x.csv", b"a,a\n1,2\n").contains("two columns named 'a'"));
}

#[test]
fn matrices_that_are_not_square_or_symmetric() {
    assert_eq!(
        given("k.npy", &npy("<f4", "(2, 3)", &singles(&[0.0; 6]))),
        "k.npy: the array has the shape (2, 3); a kernel between training samples must be square (n, n)"
    );
    assert!(
        given("k.npy", &npy("<f4", "(2, 3, 4)", &singles(&[0.0; 24])))
            .contains("stacked as (kernels, n, n)")
    );
    assert!(
        given("k.npy", &npy("<f4", "(4,)", &singles(&[0.0; 4])))
            .contains("the shape (4,); give a matrix")
    );
    assert!(
        given(
            "k.npy",
            &npy("<f4", "(2, 2)", &singles(&[1.0, 0.0, 0.5, 1.0]))
        )
        .starts_with(
            "k.npy: the matrix is not symmetric: row 1, column 2 is 0 but row 2, column 1 is 0.5; "
        )
    );
    assert!(given("k.npy", &npy("<U1", "(1, 1)", &[65, 0, 0, 0])).contains("the array holds text"));
    assert!(given("k.csv", b"a\n1\n").contains("give .npz, .npy or a folder of .npy files"));
}

#[test]
fn the_wrong_number_of_labels() {
    assert_eq!(
        labels("y.txt", b"a\nb\nc\n"),
        "labels: there are 3 labels for 2 samples; give one label for each sample, in the same order"
    );
    assert!(
        labels("y.npy", &npy("<f4", "(2, 2)", &singles(&[0.0; 4])))
            .contains("labels are an array of shape (n,)")
    );
}

#[test]
fn a_single_class() {
    let options = LoadOptions {
        features: vec!["x.libsvm".into()],
        ..LoadOptions::default()
    };
    let files = BTreeMap::from([("x.libsvm".to_owned(), b"1 1:2\n1 1:3\n".to_vec())]);
    let data = load_from(&options, &files, &()).unwrap();
    let error = Targets::new(data.labels.as_ref(), Task::Classify, data.views.len()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "labels: all samples have the same label '1'; \
         to classify give samples of at least two classes, or take the task one-class"
    );
}

#[test]
fn empty_files() {
    for name in [
        "x.npy",
        "x.npz",
        "x.csv",
        "x.csv.gz",
        "x.libsvm",
        "x.fasta",
        "x.parquet",
    ] {
        assert_eq!(
            features(name, b""),
            format!("{name}: the file is empty; give a file with data")
        );
    }
    assert!(labels("y.txt", b"").starts_with("y.txt: the file is empty"));
    assert!(labels("y.txt", b"\n\n").starts_with("y.txt: there are no labels"));
    assert!(features("x.libsvm", b"# nothing\n").contains("there is no sample in the file"));
    assert!(features("x.fasta", b"\n\n").contains("there is no sequence in the file"));
    assert!(features("x.csv", b"\n\n").contains("the file holds no header"));
    assert!(
        features("x.npy", &npy("<f4", "(0, 3)", &[])).contains("the array has the shape (0, 3)")
    );
}

#[test]
fn truncated_arrays_and_archives() {
    let array = npy("<f4", "(100, 100)", &singles(&[1.0; 10_000]));
    assert_eq!(
        features("x.npy", &array[..array.len() - 1]),
        "x.npy: the header promises an array of shape (100, 100) with 40000 bytes but 39999 bytes follow; \
         the file is truncated or damaged: copy or write it again"
    );
    assert!(features("x.npy", &array[..5]).contains("the file ends inside the .npy header"));
    assert!(features("x.npy", &array[..50]).contains("the file ends inside the .npy header"));
    for method in [
        zip::CompressionMethod::Stored,
        zip::CompressionMethod::Deflated,
    ] {
        let archive = npz("a.npy", &array, method);
        for cut in [10, archive.len() / 2, archive.len() - 1] {
            let error = features("x.npz", &archive[..cut]);
            assert!(
                error.starts_with("x.npz: this is not a complete .npz archive")
                    && error.ends_with("the file is truncated or damaged: copy or write it again"),
                "{error}"
            );
        }
        let short = npz("a.npy", &array[..200], method);
        assert!(
            features("x.npz", &short)
                .starts_with("x.npz:a: the header promises an array of shape (100, 100)")
        );
    }
    assert!(
        features("x.npz", &npz("a.txt", b"x", zip::CompressionMethod::Stored))
            .contains("the archive holds no array")
    );
    let mut changed = npz("a.npy", &array, zip::CompressionMethod::Stored);
    changed[1000] ^= 1;
    assert!(
        features("x.npz", &changed)
            .to_lowercase()
            .contains("checksum"),
        "{}",
        features("x.npz", &changed)
    );
}

#[test]
fn headers_that_promise_too_much() {
    assert!(
        features("x.npy", &npy("<f8", "(1000000000, 1000)", &[0; 64]))
            .contains("with 8000000000000 bytes but 64 bytes follow")
    );
    assert_eq!(
        features("x.npy", &npy("<f8", "(99999999999, 99999999999)", &[0; 64])),
        "x.npy: the header promises an array of shape (99999999999, 99999999999), more than a file can hold; \
         the file is damaged: write it again"
    );
    assert!(
        features(
            "x.npy",
            &npy("<f8", "(999999999999999999999999,)", &[0; 64])
        )
        .contains("where a size was expected")
    );
    assert!(
        given("k.npy", &npy("<f4", "(100000, 100000)", &[0; 64])).contains("but 64 bytes follow")
    );
    assert!(features("x.libsvm", b"1 99999999999:1\n").contains("has an index above 2147483647"));
    // The directory of the archive claims a huge member.
    let array = npy("<f4", "(2, 2)", &singles(&[1.0; 4]));
    let mut archive = npz("a.npy", &array, zip::CompressionMethod::Deflated);
    let at = archive
        .windows(4)
        .rposition(|w| w == b"PK\x01\x02")
        .unwrap();
    archive[at + 24..at + 28].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let error = features("x.npz", &archive);
    assert!(
        error.starts_with("x.npz:a: the archive claims 2147483647 bytes made from "),
        "{error}"
    );
}

#[test]
fn a_bomb_is_refused_by_its_size() {
    // 40 MB of zeros in some 40 KB.
    let array = npy("<f4", "(10000, 1000)", &vec![0; 40_000_000]);
    let archive = npz("a.npy", &array, zip::CompressionMethod::Deflated);
    assert!(archive.len() < 100_000);
    let options = LoadOptions {
        features: vec!["x.npz".into()],
        memory: Some(1 << 20),
        ..LoadOptions::default()
    };
    assert_eq!(
        said(&options, &[("x.npz", &archive)]),
        "reading x.npz:a (all data so far included) needs 38.1 MiB but 1.0 MiB may be used; \
         allow more memory, or give fewer rows, columns or matrices"
    );
    // An unclosed quote does not swallow the file.
    let mut text = b"a,b\n1,\"".to_vec();
    text.resize(8 << 20, b'x');
    let options = LoadOptions {
        features: vec!["x.csv".into()],
        memory: Some(1 << 20),
        ..LoadOptions::default()
    };
    assert!(said(&options, &[("x.csv", &text)]).contains("is every quote closed?"));
    let options = LoadOptions {
        features: vec!["x.svm".into()],
        ..options
    };
    assert!(
        said(&options, &[("x.svm", &text[8..])])
            .contains("line 1: the line is longer than 1048576 bytes")
    );
}

#[test]
fn text_that_is_not_utf_8() {
    assert_eq!(
        features("x.csv", b"a,\xff\n1,2\n"),
        "x.csv header, column 2: the name is not UTF-8; save the file as UTF-8"
    );
    for (text, place) in [
        (&b"a,b\n1,\xff\n"[..], "row 1 (line 2)"),
        (b"a,b\n1,2\n1,\xff\n", "row 2 (line 3)"),
    ] {
        assert_eq!(
            features("x.csv", text),
            format!("x.csv {place}, column 'b': the cell is not UTF-8; save the file as UTF-8")
        );
    }
    assert!(features("x.svm", b"1 1:\xff\n").starts_with("x.svm line 1: the line is not UTF-8"));
    assert!(features("x.fa", b">\xff\nA\n").starts_with("x.fa line 1: the header is not UTF-8"));
    assert!(
        features("x.fa", b">a\nA\xff\n")
            .starts_with("x.fa line 2: the sequence holds the byte 0xff")
    );
    assert!(labels("y.txt", b"a\n\xff\n").starts_with("y.txt line 2: the line is not UTF-8"));
    assert!(
        labels("y.csv", b"l\na\n\xff\n")
            .starts_with("y.csv row 2 (line 3), column 'l': the cell is not UTF-8")
    );
    assert!(
        labels("y.npy", &npy("|S1", "(2,)", b"a\xff"))
            .starts_with("y.npy row 2: the text is not UTF-8")
    );
    assert!(
        features("x.npy", &npy("<U1", "(1,)", &[0, 0xd8, 0, 0]))
            .contains("row 1: the text is not Unicode")
    );
}

#[test]
fn fasta_that_is_not() {
    assert!(
        features("x.fa", b"ACGT\n")
            .starts_with("x.fa line 1: there is text before the first header")
    );
    assert!(features("x.fa", b">a\n>b\nA\n").starts_with("x.fa: sequence 'a' is empty"));
    assert!(features("x.fa", b">a\nA\n>b\n").starts_with("x.fa: sequence 'b' is empty"));
    assert!(features("x.fa", b">\nA\n").starts_with("x.fa line 1: the header names no sequence"));
    assert!(
        features("x.fa", b">a label=1\nA\n>b\nC\n")
            .contains("line 3: the header of 'b' has no 'label='")
    );
}

#[test]
fn damaged_compression() {
    assert!(
        features("x.csv.gz", b"a,b\n1,2\n")
            .starts_with("x.csv.gz: the compressed data is damaged or ends early")
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(b"a,b\n1,2\n").unwrap();
    let packed = packed.finish().unwrap();
    let error = features("x.csv.gz", &packed[..packed.len() - 9]);
    assert!(
        error.ends_with("copy or compress the file again"),
        "{error}"
    );
}

#[test]
fn unknown_or_missing_files() {
    assert!(
        features("x.xlsx", b"x").starts_with(
            "x.xlsx: files ending in '.xlsx' are not understood; give .npy, .npz, .csv"
        )
    );
    assert!(features("x.txt", b"1 2\n").contains("features are not read from plain text"));
    let missing = LoadOptions {
        features: vec!["/no/such/file.npy".into()],
        ..LoadOptions::default()
    };
    let error = load(&missing, &()).unwrap_err().to_string();
    assert!(error.starts_with("/no/such/file.npy: "), "{error}");
    let error = load(&LoadOptions::default(), &()).unwrap_err().to_string();
    assert_eq!(
        error,
        "data: no data is given; give files with features or given matrices"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let empty = LoadOptions {
        gram: vec![path.clone()],
        ..LoadOptions::default()
    };
    assert!(
        load(&empty, &())
            .unwrap_err()
            .to_string()
            .contains("the folder holds no .npy file")
    );
    let folder = LoadOptions {
        features: vec![path],
        ..LoadOptions::default()
    };
    assert!(
        load(&folder, &())
            .unwrap_err()
            .to_string()
            .contains("this is a folder")
            || cfg!(windows)
    );
}

#[test]
fn ids_and_labels_of_an_archive_that_are_too_many() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let a = npy("<f4", "(1, 1)", &singles(&[1.0]));
    let id = npy("<U1", "(2,)", &[b'u', 0, 0, 0, b'v', 0, 0, 0]);
    for (name, bytes) in [("a.npy", &a), ("id.npy", &id)] {
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
    }
    let archive = zip.finish().unwrap().into_inner();
    let table: &[u8] = b"id,x\nv,1\nu,2\n";
    let mut options = LoadOptions {
        features: vec!["t.csv".into(), "x.npz".into()],
        id_column: Some("id".into()),
        ..LoadOptions::default()
    };
    assert_eq!(
        said(&options, &[("t.csv", table), ("x.npz", &archive)]),
        "x.npz: there are 2 ids for 1 samples; give as many ids as samples, in the same order"
    );
    options.id_column = None;
    options.label_column = Some("id".into());
    assert_eq!(
        said(&options, &[("t.csv", table), ("x.npz", &archive)]),
        "x.npz: there are 2 labels for 1 samples; give as many labels as samples, in the same order"
    );
}

#[test]
fn ids_where_there_are_none() {
    let options = LoadOptions {
        features: vec!["x.npy".into()],
        id_column: Some("id".into()),
        purpose: Purpose::Training,
        ..LoadOptions::default()
    };
    let array = npy("<f4", "(1, 1)", &singles(&[1.0]));
    assert!(
        said(&options, &[("x.npy", &array)])
            .starts_with("x.npy: this kind of file holds no ids; leave out the id column 'id'")
    );
}

/// Found by fuzzing: a page of a file of 1.3 KB claimed gigabytes, which the decoder took before it looked.
#[cfg(feature = "parquet")]
#[test]
fn a_parquet_page_that_claims_gigabytes() {
    let bytes = include_bytes!("fuzzed/page-claims-gigabytes.parquet");
    let options = LoadOptions {
        features: vec!["x.parquet".into()],
        views: vec!["v=1..2".parse().unwrap()],
        memory: Some(64 << 20),
        ..LoadOptions::default()
    };
    let error = said(&options, &[("x.parquet", bytes)]);
    assert!(
        error.contains("the pages of column 'b' have wrong sizes"),
        "{error}"
    );
}

/// Found by fuzzing: the decoder panics on a page that refers to a dictionary that is not there.
#[cfg(feature = "parquet")]
#[test]
fn a_parquet_page_that_makes_the_decoder_panic() {
    let bytes = include_bytes!("fuzzed/dictionary-missing.parquet");
    let options = LoadOptions {
        features: vec!["x.parquet".into()],
        views: vec!["v=1..2".parse().unwrap()],
        label_column: Some("y".into()),
        id_column: Some("id".into()),
        memory: Some(64 << 20),
        ..LoadOptions::default()
    };
    assert_eq!(
        said(&options, &[("x.parquet", bytes)]),
        "x.parquet: this is not a complete Parquet file (its pages cannot be decoded); \
         the file is truncated or damaged: copy or write it again"
    );
}
