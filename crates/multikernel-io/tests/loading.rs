//! What files become: every format, joins, cuts, given matrices and memory bounds, through the one entry point.

use flate2::Compression;
use flate2::write::GzEncoder;
use multikernel::Error;
use multikernel::data::{Dataset, LabelKind, Pairwise, ViewData};
use multikernel::observe::{Observer, Progress};
use multikernel_io::{ArrayWriter, LoadOptions, Purpose, load, load_from};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;

fn files(files: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
    files
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect()
}

fn features(names: &[&str]) -> LoadOptions {
    LoadOptions {
        features: names.iter().map(|&n| n.to_owned()).collect(),
        ..LoadOptions::default()
    }
}

fn get(options: &LoadOptions, given: &[(&str, &[u8])]) -> Dataset {
    load_from(options, &files(given), &()).unwrap()
}

fn said(options: &LoadOptions, given: &[(&str, &[u8])]) -> String {
    load_from(options, &files(given), &())
        .unwrap_err()
        .to_string()
}

fn dense(data: &Dataset, view: &str) -> Vec<f32> {
    match &data.views.get(view).unwrap().data {
        ViewData::Dense(x) => x.values().to_vec(),
        other => panic!("dense expected, found {}", other.kind()),
    }
}

fn strings(data: &Dataset, view: &str) -> Vec<String> {
    match &data.views.get(view).unwrap().data {
        ViewData::Strings(x) => x
            .iter()
            .map(|s| String::from_utf8(s.clone()).unwrap())
            .collect(),
        other => panic!("strings expected, found {}", other.kind()),
    }
}

fn pairwise(data: &Dataset, view: &str) -> Pairwise {
    match &data.views.get(view).unwrap().data {
        ViewData::Pairwise(x) => x.clone(),
        other => panic!("a given matrix expected, found {}", other.kind()),
    }
}

fn spellings(data: &Dataset) -> Vec<String> {
    let labels = data.labels.as_ref().unwrap();
    (0..labels.len())
        .map(|i| labels.spelling(i).to_owned())
        .collect()
}

fn npy(shape: &str, fortran: bool, values: &[f32]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    out
}

fn npz(arrays: &[(&str, &[u8])]) -> Vec<u8> {
    use zip::write::SimpleFileOptions;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (k, (name, bytes)) in arrays.iter().enumerate() {
        // Stored and deflated members in turn.
        let method = match k % 2 {
            0 => zip::CompressionMethod::Deflated,
            _ => zip::CompressionMethod::Stored,
        };
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn csv_is_one_view_of_its_numeric_columns() {
    let mut options = features(&["dir/table.csv"]);
    options.label_column = Some("kind".into());
    options.id_column = Some("name".into());
    let table = b"name,a,kind,\"b, too\"\r\nu,1,x,2.5\r\nv,-3e1,y, 4 \r\n";
    let data = get(&options, &[("dir/table.csv", table)]);
    assert_eq!(dense(&data, "table"), [1.0, 2.5, -30.0, 4.0]);
    assert_eq!(data.views.get("table").unwrap().columns, ["a", "b, too"]);
    assert_eq!(data.views.ids().unwrap(), ["u", "v"]);
    assert_eq!(spellings(&data), ["x", "y"]);
    assert!(data.notes.is_empty(), "{:?}", data.notes);
}

#[test]
fn views_are_cut_from_columns_and_text_becomes_strings() {
    let mut options = features(&["t.csv.gz"]);
    options.views = vec![
        "low=p1,p2".parse().unwrap(),
        "all=p*".parse().unwrap(),
        "range=2..3".parse().unwrap(),
        "seq=sequence".parse().unwrap(),
    ];
    options.label_column = Some("y".into());
    let table = gz(b"sequence,p1,y,p2,p10\nACGT,1,0,2,3\nNAN,4,1,5,6\n");
    let data = get(&options, &[("t.csv.gz", &table)]);
    assert_eq!(dense(&data, "low"), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(dense(&data, "all"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(
        dense(&data, "range"),
        [1.0, 4.0],
        "the label is passed over"
    );
    assert_eq!(strings(&data, "seq"), ["ACGT", "NAN"]);
    assert_eq!(
        data.notes,
        ["column 'sequence' of t.csv.gz holds text: view 'seq' is a view of strings"]
    );
}

#[test]
fn a_label_left_among_the_features_is_pointed_out() {
    let data = get(&features(&["t.csv"]), &[("t.csv", b"a,Label\n1,0\n2,1\n")]);
    assert!(
        data.notes[0].starts_with("column 'Label' of t.csv is used as a feature"),
        "{:?}",
        data.notes
    );
}

#[test]
fn tsv_and_a_byte_order_mark() {
    let data = get(
        &features(&["t.tsv"]),
        &[("t.tsv", b"\xEF\xBB\xBFa\tb\n1\t2\n")],
    );
    assert_eq!(data.views.get("t").unwrap().columns, ["a", "b"]);
}

#[test]
fn npy_and_npz_views() {
    let a = npy("(2, 3)", false, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = npy("(2, 2)", true, &[1.0, 2.0, 3.0, 4.0]);
    let y = npy("(2,)", false, &[1.0, 2.0]);
    let data = get(&features(&["a.npy"]), &[("a.npy", &a)]);
    assert_eq!(dense(&data, "a"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let archive = npz(&[("first", &a), ("second", &b), ("y", &y)]);
    let mut options = features(&["x.npz"]);
    options.labels = Some("x.npz:y".into());
    let data = get(&options, &[("x.npz", &archive)]);
    assert_eq!(data.views.iter().count(), 2, "the labels are no view");
    assert_eq!(dense(&data, "second"), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(spellings(&data), ["1", "2"]);
    let data = get(&features(&["x.npz:second"]), &[("x.npz", &archive)]);
    assert_eq!(data.views.iter().count(), 1);
    let mut options = features(&["x.npz"]);
    options.label_column = Some("y".into());
    assert_eq!(
        get(&options, &[("x.npz", &archive)]).labels.unwrap().len(),
        2
    );
    let error = said(&features(&["x.npz"]), &[("x.npz", &archive)]);
    assert!(
        error.starts_with("x.npz:y: the array has the shape (2,); a view is"),
        "{error}"
    );
    let error = said(&features(&["x.npz:third"]), &[("x.npz", &archive)]);
    assert_eq!(
        error,
        "x.npz: there is no array 'third'; the archive holds 'first', 'second', 'y'"
    );
}

#[test]
fn libsvm_text_is_sparse_with_labels() {
    let text = b"+1 qid:4 3:2 1:0.5 # comment\n\n# only a comment\n-1 2:0 4:1e1\n";
    let data = get(&features(&["a.libsvm"]), &[("a.libsvm", text)]);
    let ViewData::Sparse(x) = &data.views.get("a").unwrap().data else {
        panic!("sparse expected");
    };
    assert_eq!((x.rows(), x.cols(), x.entries()), (2, 4, 3));
    assert_eq!(x.row(0), (&[0u32, 2][..], &[0.5f32, 2.0][..]));
    assert_eq!(x.row(1), (&[3u32][..], &[10.0f32][..]));
    assert_eq!(spellings(&data), ["+1", "-1"]);
    assert_eq!(data.labels.unwrap().kind(), LabelKind::Integer);
    let data = get(&features(&["a.svm"]), &[("a.svm", b"1:2 2:3\n2:1\n")]);
    assert!(data.labels.is_none());
}

#[test]
fn fasta_is_a_string_view_with_ids_and_labels() {
    let text = b">s1 first label=a\nAC GT\nAC\n\n>s2|label=b\ngg\n";
    let data = get(&features(&["s.fa"]), &[("s.fa", text)]);
    assert_eq!(strings(&data, "s"), ["ACGTAC", "gg"]);
    assert_eq!(data.views.ids().unwrap(), ["s1", "s2|label=b"]);
    assert_eq!(spellings(&data), ["a", "b"]);
    let mut options = features(&["s.fa"]);
    options.label_key = Some("class".into());
    let error = said(&options, &[("s.fa", text)]);
    assert_eq!(
        error,
        "s.fa line 1: the header of 's1' has no 'class='; give every header class=…, or none"
    );
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_columns_of_every_kind() {
    let bytes = parquet_file();
    let mut options = features(&["t.parquet"]);
    options.label_column = Some("y".into());
    options.id_column = Some("id".into());
    options.views = vec!["x=a,b,flag".parse().unwrap(), "s=seq".parse().unwrap()];
    let data = get(&options, &[("t.parquet", &bytes)]);
    assert_eq!(
        dense(&data, "x"),
        [0.5, 1.0, 1.0, 1.5, 2.0, 0.0, 2.5, 3.0, 1.0]
    );
    assert_eq!(strings(&data, "s"), ["AC", "G", "T"]);
    assert_eq!(spellings(&data), ["0.1", "0.2", "0.1"]);
    assert_eq!(data.views.ids().unwrap(), ["7", "8", "9"]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    std::fs::write(&path, &bytes).unwrap();
    options.features = vec![path.to_str().unwrap().into()];
    let again = load(&options, &()).unwrap();
    assert_eq!(dense(&again, "x"), dense(&data, "x"));
    let error = said(&features(&["t.parquet"]), &[("t.parquet", &bytes)]);
    assert!(
        error.starts_with("t.parquet: columns 'seq' hold text, where numbers are needed"),
        "{error}"
    );
    options.features = vec!["t.parquet".into()];
    options.views = vec!["x=a,hole".parse().unwrap()];
    let error = said(&options, &[("t.parquet", &bytes)]);
    assert!(
        error.starts_with("t.parquet row 2, column 'hole': the cell is empty"),
        "{error}"
    );
    for cut in [0, 4, bytes.len() / 2, bytes.len() - 1] {
        let error = said(&options, &[("t.parquet", &bytes[..cut.max(1)])]);
        assert!(error.contains("not a complete Parquet file"), "{error}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_dates_and_times_are_no_features() {
    use parquet::data_type::{FloatType, Int32Type, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    let schema = "message t { required float x; required int32 day (DATE);
                  required int64 at (TIMESTAMP(MICROS,true)); required int64 y; }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema.into(), Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    macro_rules! column {
        ($type:ty, $values:expr) => {
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<$type>();
            typed.write_batch(&$values, None, None).unwrap();
            column.close().unwrap();
        };
    }
    let large = 10_000_000_000_000_000;
    column!(FloatType, [0.5, 1.5]);
    column!(Int32Type, [18262, 18263]);
    column!(Int64Type, [1_577_836_800_000_000i64, 1_577_923_200_000_000]);
    column!(Int64Type, [large, large + 1]);
    group.close().unwrap();
    writer.close().unwrap();

    let mut options = features(&["t.parquet"]);
    options.label_column = Some("y".into());
    let error = said(&options, &[("t.parquet", &bytes)]);
    assert!(
        error.starts_with("t.parquet: columns 'day', 'at' hold dates or times"),
        "{error}"
    );
    options.views = vec!["v=x".parse().unwrap()];
    // As ids they tell rows apart.
    options.id_column = Some("at".into());
    let data = get(&options, &[("t.parquet", &bytes)]);
    assert_eq!(dense(&data, "v"), [0.5, 1.5]);
    assert_eq!(spellings(&data), ["10000000000000000", "10000000000000001"]);
    options.label_column = Some("day".into());
    let error = said(&options, &[("t.parquet", &bytes)]);
    assert!(error.contains("'day' hold dates or times"), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_compressions_that_are_not_read_are_named() {
    use parquet::data_type::FloatType;
    use parquet::file::writer::SerializedFileWriter;
    let schema = parquet::schema::parser::parse_message_type("message t { required float x; }");
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema.unwrap().into(), Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let typed = column.typed::<FloatType>();
    typed.write_batch(&[0.5, 1.5], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let options = features(&["t.parquet"]);
    assert_eq!(get(&options, &[("t.parquet", &bytes)]).views.len(), 2);
    // In the description of the column its name is followed by the field of the compression.
    let field = [0x19, 0x18, 1, b'x', 0x15];
    let at = bytes.windows(5).rposition(|w| w == field).unwrap() + field.len();
    assert_eq!(bytes[at], 0, "not compressed");
    for (codec, name) in [(3, "LZO"), (4, "Brotli")] {
        bytes[at] = 2 * codec;
        let error = said(&options, &[("t.parquet", &bytes)]);
        assert_eq!(
            error,
            format!(
                "t.parquet: its columns are compressed with {name}, which is not read; \
                 write the file with snappy (the usual one), zstd, gzip or lz4"
            )
        );
    }
}

#[test]
fn large_whole_labels_of_an_array_stay_what_they_are() {
    for (kind, values) in [
        ("<i8", [-10_000_000_000_000_001i64, 10_000_000_000_000_000]),
        ("<u8", [-1, -2]),
    ] {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (2,), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        let x = npy("(2, 1)", false, &[0.5, 1.0]);
        let mut options = features(&["x.npy"]);
        options.labels = Some("y.npy".into());
        let data = get(&options, &[("x.npy", &x), ("y.npy", &bytes)]);
        let wanted = match kind {
            "<i8" => ["-10000000000000001", "10000000000000000"],
            _ => ["18446744073709551615", "18446744073709551614"],
        };
        assert_eq!(spellings(&data), wanted);
        assert_eq!(data.labels.unwrap().distinct(), 2);
    }
}

#[cfg(feature = "parquet")]
fn parquet_file() -> Vec<u8> {
    use parquet::data_type::{
        BoolType, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type,
    };
    use parquet::file::writer::SerializedFileWriter;
    let schema = "message t { required double a; required int32 b; required boolean flag; required binary seq (UTF8);
                  required float y; required int64 id; optional double hole; }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let mut out = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut out, schema.into(), Default::default()).unwrap();
    // Two row groups, so that rows go on across them.
    for rows in [0..2usize, 2..3] {
        let mut group = writer.next_row_group().unwrap();
        macro_rules! column {
            ($type:ty, $values:expr, $levels:expr) => {
                let mut column = group.next_column().unwrap().unwrap();
                column
                    .typed::<$type>()
                    .write_batch(&$values, $levels, None)
                    .unwrap();
                column.close().unwrap();
            };
        }
        let pick = |all: [f64; 3]| all[rows.clone()].to_vec();
        column!(DoubleType, pick([0.5, 1.5, 2.5]), None);
        column!(
            Int32Type,
            pick([1.0, 2.0, 3.0])
                .iter()
                .map(|&v| v as i32)
                .collect::<Vec<_>>(),
            None
        );
        column!(BoolType, [true, false, true][rows.clone()], None);
        let words: Vec<_> = ["AC", "G", "T"][rows.clone()]
            .iter()
            .map(|&w| w.into())
            .collect();
        column!(ByteArrayType, words, None);
        column!(FloatType, [0.1f32, 0.2, 0.1][rows.clone()], None);
        column!(Int64Type, [7i64, 8, 9][rows.clone()], None);
        let levels = [1i16, 0, 1];
        let values = vec![1.0; levels[rows.clone()].iter().filter(|&&l| l == 1).count()];
        column!(DoubleType, values, Some(&levels[rows.clone()]));
        group.close().unwrap();
    }
    writer.close().unwrap();
    out
}

#[test]
fn labels_from_every_kind_of_file() {
    let x: (&str, &[u8]) = ("x.csv", b"a,b\n1,2\n3,4\n");
    let numbers = npy("(2, 1)", false, &[0.5, 1.0]);
    let archive = npz(&[("y", &numbers)]);
    type Case = (
        &'static str,
        Vec<u8>,
        Option<&'static str>,
        [&'static str; 2],
    );
    let cases: Vec<Case> = vec![
        ("y.txt", b"cat\r\ndog\n\n".to_vec(), None, ["cat", "dog"]),
        ("y", b"1\n2\n".to_vec(), None, ["1", "2"]),
        ("y.txt.gz", gz(b"true\nfalse\n"), None, ["true", "false"]),
        ("y.npy", numbers.clone(), None, ["0.5", "1"]),
        ("y.npz", archive.clone(), None, ["0.5", "1"]),
        ("y.npz:y", archive, None, ["0.5", "1"]),
        ("y.csv", b"k\nu\nv\n".to_vec(), None, ["u", "v"]),
        ("y.csv.gz", gz(b"z,k\n1,u\n2,v\n"), Some("k"), ["u", "v"]),
        (
            "y.fasta",
            b">a label=p\nA\n>b label=q\nC\n".to_vec(),
            None,
            ["p", "q"],
        ),
        ("y.libsvm", b"3 1:1\n4 1:1\n".to_vec(), None, ["3", "4"]),
    ];
    for (name, bytes, column, expected) in cases {
        let mut options = features(&["x.csv"]);
        options.labels = Some(name.into());
        options.label_column = column.map(str::to_owned);
        let file = name.split(':').next().unwrap();
        let data = get(&options, &[x, (file, &bytes)]);
        assert_eq!(spellings(&data), expected, "{name}");
        assert_eq!(data.views.iter().count(), 1, "{name}");
    }
}

#[test]
fn rows_are_joined_by_id_in_any_order() {
    let mut options = features(&["a.csv", "b.csv", "s.fa"]);
    options.id_column = Some("id".into());
    options.labels = Some("y.csv".into());
    let a: &[u8] = b"id,v\nr,1\ns,2\nt,3\n";
    let s: &[u8] = b">s\nS\n>t\nT\n>r\nR\n";
    let y: &[u8] = b"id,label\nt,tt\nq,qq\nr,rr\ns,ss\n";
    let data = get(
        &options,
        &[
            ("a.csv", a),
            ("b.csv", b"w,id\n30,t\n10,r\n20,s\n"),
            ("s.fa", s),
            ("y.csv", y),
        ],
    );
    assert_eq!(dense(&data, "a"), [1.0, 2.0, 3.0]);
    assert_eq!(dense(&data, "b"), [10.0, 20.0, 30.0]);
    assert_eq!(strings(&data, "s"), ["R", "S", "T"]);
    assert_eq!(spellings(&data), ["rr", "ss", "tt"]);
    assert_eq!(data.views.ids().unwrap(), ["r", "s", "t"]);
    assert_eq!(
        data.notes,
        ["y.csv has labels for 4 samples; those of the 3 samples with features are used"]
    );
    let mut options = features(&["a.csv", "b.csv"]);
    options.id_column = Some("id".into());
    let with = |b: &[u8]| said(&options, &[("a.csv", a), ("b.csv", b)]);
    assert_eq!(
        with(b"w,id\n30,t\n10,x\n20,z\n"),
        "b.csv: 2 ids of a.csv are missing: 'r', 's'; give every sample in every file"
    );
    assert_eq!(
        with(b"w,id\n30,t\n10,r\n20,s\n5,x\n"),
        "b.csv: 1 ids are not in a.csv: 'x'; give every sample in every file"
    );
    assert_eq!(
        with(b"w,id\n30,t\n10,r\n20,r\n"),
        "b.csv: 1 ids occur more than once: 'r'; give every sample an id of its own"
    );
    assert_eq!(
        with(b"w\n30\n"),
        "b.csv: there is no id column 'id'; the columns are 'w'"
    );
    let error = said(
        &options,
        &[("a.csv", b"id,v\nr,1\nr,2\n"), ("b.csv", b"id,w\nr,1\n")],
    );
    assert!(
        error.starts_with("a.csv: 1 ids occur more than once: 'r'"),
        "{error}"
    );
    options.id_column = None;
    let error = said(&options, &[("a.csv", b"v\n1\n"), ("b.csv", b"w\n1\n2\n")]);
    assert!(
        error.starts_with("b.csv: it has 2 samples but a.csv has 1; give the same samples"),
        "{error}"
    );
}

#[test]
fn cuts_find_their_file() {
    let mut options = features(&["a.csv", "b.csv"]);
    options.views = vec!["one=x".parse().unwrap(), "two=z".parse().unwrap()];
    let given: &[(&str, &[u8])] = &[("a.csv", b"x,m\n1,2\n"), ("b.csv", b"m,z\n3,4\n")];
    let data = get(&options, given);
    assert_eq!(
        (dense(&data, "one"), dense(&data, "two")),
        (vec![1.0], vec![4.0])
    );
    options.views = vec!["one=m".parse().unwrap()];
    assert!(said(&options, given).contains("in several files ('a.csv', 'b.csv')"));
    options.views = vec!["one=q".parse().unwrap()];
    assert_eq!(
        said(&options, given),
        "view 'one': there is no column 'q'; the columns are 'x', 'm'"
    );
    options.views = vec!["one=x".parse().unwrap()];
    let data = get(&options, given);
    assert_eq!(
        data.notes,
        ["no view is cut from b.csv: all of its columns are view 'b'"]
    );
}

#[test]
fn stacks_of_given_matrices_in_all_orders() {
    // Kernel 0 is 1 2 / 2 3, kernel 1 is 4 5 / 5 6, kernel 2 is 7 8 / 8 9.
    let k = |m: usize, i: usize, j: usize| (3 * m + i + j + 1) as f32;
    let first: Vec<f32> = (0..12).map(|p| k(p / 4, p / 2 % 2, p % 2)).collect();
    let last: Vec<f32> = (0..12).map(|p| k(p % 3, p / 6, p / 3 % 2)).collect();
    let first_fortran: Vec<f32> = (0..12).map(|p| k(p % 3, p / 3 % 2, p / 6)).collect();
    let last_fortran: Vec<f32> = (0..12).map(|p| k(p / 4, p % 2, p / 2 % 2)).collect();
    for (shape, fortran, values) in [
        ("(3, 2, 2)", false, first),
        ("(2, 2, 3)", false, last),
        ("(3, 2, 2)", true, first_fortran),
        ("(2, 2, 3)", true, last_fortran),
    ] {
        let options = LoadOptions {
            gram: vec!["k.npy".into()],
            ..LoadOptions::default()
        };
        let data = get(&options, &[("k.npy", &npy(shape, fortran, &values))]);
        for m in 0..3 {
            let matrix = pairwise(&data, &format!("k_{m}"));
            for i in 0..2 {
                assert_eq!(
                    matrix.row(i),
                    [k(m, i, 0), k(m, i, 1)],
                    "{shape} {fortran} {m}"
                );
            }
        }
    }
}

#[test]
fn given_matrices_for_prediction_are_rectangular() {
    let mut options = LoadOptions {
        gram: vec!["k.npy".into()],
        purpose: Purpose::Prediction {
            references: Some(3),
            kernels: None,
        },
        ..LoadOptions::default()
    };
    let values: Vec<f32> = (0..6).map(|v| v as f32).collect();
    let data = get(&options, &[("k.npy", &npy("(2, 3)", false, &values))]);
    let k = pairwise(&data, "k");
    assert_eq!((k.rows(), k.cols()), (2, 3));
    assert_eq!(k.row(1), [3.0, 4.0, 5.0]);
    let error = said(&options, &[("k.npy", &npy("(3, 2)", false, &values))]);
    assert_eq!(
        error,
        "k.npy: the array has the shape (3, 2); give one column for each of the 3 training samples"
    );
    // One new sample, three training samples, two kernels, kernels last.
    let data = get(&options, &[("k.npy", &npy("(1, 3, 2)", false, &values))]);
    assert_eq!(pairwise(&data, "k_1").row(0), [1.0, 3.0, 5.0]);
    options.purpose = Purpose::Prediction {
        references: Some(3),
        kernels: Some(2),
    };
    let error = said(&options, &[("k.npy", &npy("(1, 2, 3)", false, &values))]);
    assert!(
        error.ends_with("with 2 kernels and 3 training samples"),
        "{error}"
    );
    // A label column is optional for new samples.
    let mut options = features(&["x.csv"]);
    options.label_column = Some("y".into());
    options.purpose = Purpose::Prediction {
        references: None,
        kernels: None,
    };
    assert!(get(&options, &[("x.csv", b"a\n1\n")]).labels.is_none());
}

#[test]
fn slightly_asymmetric_matrices_are_evened_out_and_said() {
    let options = LoadOptions {
        gram: vec!["k.npy".into()],
        ..LoadOptions::default()
    };
    let data = get(
        &options,
        &[("k.npy", &npy("(2, 2)", false, &[1.0, 0.5, 0.50005, 1.0]))],
    );
    let k = pairwise(&data, "k");
    assert_eq!(k.row(0)[1], k.row(1)[0]);
    assert!((k.row(0)[1] - 0.500_025).abs() < 1e-6);
    assert!(
        data.notes[0].starts_with("matrix 'k' is slightly asymmetric (by ")
            && data.notes[0].ends_with("it was replaced by the average with its transpose"),
        "{:?}",
        data.notes
    );
    let error = said(
        &options,
        &[("k.npy", &npy("(2, 2)", false, &[1.0, 0.5, 0.6, 1.0]))],
    );
    assert!(
        error.starts_with(
            "k.npy: the matrix is not symmetric: row 1, column 2 is 0.5 but row 2, column 1 is 0.6; a kernel"
        ),
        "{error}"
    );
}

#[test]
fn large_files_are_mapped_and_give_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let n = 70;
    let value = |m: usize, i: usize, j: usize| 1.0 / (1.0 + (m + i.abs_diff(j)) as f32);
    for name in ["k.npz", "k.npy", "folder"] {
        let path = dir.path().join(name);
        let mut writer = ArrayWriter::create(&path).unwrap();
        if name == "k.npy" {
            let fill = |sink: &mut multikernel_io::ArraySink<'_>| {
                (0..2 * n * n).try_for_each(|p| sink.write(&[value(p / (n * n), p / n % n, p % n)]))
            };
            writer.array("k", &[2, n, n], fill).unwrap();
        } else {
            for m in 0..2 {
                let fill = |sink: &mut multikernel_io::ArraySink<'_>| {
                    (0..n).try_for_each(|i| {
                        let row: Vec<f32> = (0..n).map(|j| value(m, i, j)).collect();
                        sink.write(&row)
                    })
                };
                writer.array(&format!("k_{m}"), &[n, n], fill).unwrap();
            }
        }
        writer.finish().unwrap();
        let mut options = LoadOptions {
            gram: vec![path.to_str().unwrap().into()],
            map_above: Some(1000),
            memory: Some(1000),
            ..LoadOptions::default()
        };
        for purpose in [
            Purpose::Training,
            Purpose::Prediction {
                references: Some(n),
                kernels: Some(2),
            },
        ] {
            options.purpose = purpose;
            let data = load(&options, &()).unwrap();
            for m in 0..2 {
                let k = pairwise(&data, &format!("k_{m}"));
                assert!(k.is_mapped(), "{name}");
                assert_eq!(k.bytes_in_memory(), 0);
                for i in 0..n {
                    let row: Vec<f32> = (0..n).map(|j| value(m, i, j)).collect();
                    assert_eq!(k.row(i), row, "{name}");
                }
                k.release();
                assert_eq!(k.row(n - 1)[n - 1], value(m, 0, 0));
            }
        }
        options.map_above = None;
        let error = load(&options, &()).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Memory {
                    available: 1000,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn too_large_a_job_is_refused_in_every_format() {
    let mut csv = b"a,b\n".to_vec();
    let mut libsvm = Vec::new();
    let mut fasta = Vec::new();
    for i in 0..4000 {
        writeln!(csv, "{i},{i}").unwrap();
        writeln!(libsvm, "1 1:{i} 2:1").unwrap();
        writeln!(fasta, ">s{i}\nACGTACGT").unwrap();
    }
    let array = npy("(4000, 2)", false, &[1.0; 8000]);
    let archive = npz(&[("a", &array)]);
    let cases: [(&str, &[u8]); 6] = [
        ("x.csv", &csv),
        ("x.csv.gz", &gz(&csv)),
        ("x.libsvm", &libsvm),
        ("x.fa", &fasta),
        ("x.npy", &array),
        ("x.npz", &archive),
    ];
    for (name, bytes) in cases {
        let mut options = features(&[name]);
        options.memory = Some(20_000);
        let error = load_from(&options, &files(&[(name, bytes)]), &()).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Memory {
                    available: 20_000,
                    ..
                }
            ),
            "{name}: {error}"
        );
        options.memory = Some(1_000_000);
        assert_eq!(get(&options, &[(name, bytes)]).views.len(), 4000, "{name}");
    }
}

struct StopAtOnce;

impl Observer for StopAtOnce {
    fn progress(&self, _: &Progress<'_>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn an_observer_can_stop_the_reading() {
    let text: Vec<u8> = b"a,b\n"
        .iter()
        .chain(b"1,2\n".repeat(2 << 20).iter())
        .copied()
        .collect();
    let array = npy("(2000000, 1)", false, &vec![0.0; 2_000_000]);
    for (name, bytes) in [("x.csv", &text), ("x.npy", &array)] {
        let error =
            load_from(&features(&[name]), &files(&[(name, bytes)]), &StopAtOnce).unwrap_err();
        assert!(matches!(error, Error::Stopped), "{error}");
    }
}
