use super::super::kinds::{Holds, KINDS, Key, Parameter, Width};
use super::*;
use crate::data::{Dense, Pairwise, View, ViewData, Views};
use proptest::prelude::*;

fn one(spec: &str) -> KernelSpec {
    let mut specs = KernelSpec::parse(spec).unwrap();
    assert_eq!(specs.len(), 1, "{spec}");
    specs.remove(0)
}

fn message<T: std::fmt::Debug>(result: crate::error::Result<T>) -> String {
    result.unwrap_err().to_string()
}

fn views() -> Views {
    let view = |name: &str, data| View {
        name: name.to_owned(),
        columns: Vec::new(),
        data,
    };
    let dense = || ViewData::Dense(Dense::new(2, 1, vec![0.0, 1.0]).unwrap());
    let strings = ViewData::Strings(vec![b"ACGT".to_vec(), b"AAAA".to_vec()]);
    let matrix = ViewData::Pairwise(Pairwise::new(2, 2, vec![1.0, 0.0, 0.0, 1.0]).unwrap());
    Views::new(vec![
        view("upper_left", dense()),
        view("lower", dense()),
        view("dna", strings),
        view("K", matrix),
    ])
    .unwrap()
}

fn names(specs: &[KernelSpec]) -> Vec<&str> {
    specs
        .iter()
        .map(|spec| spec.name.as_deref().unwrap())
        .collect()
}

#[test]
fn defaults_are_those_of_the_manual() {
    for (short, long) in [
        ("linear", "linear"),
        ("poly", "poly:degree=2,coef0=1,gamma=1"),
        ("rbf", "rbf:width=mean"),
        ("laplacian", "laplacian:width=mean"),
        ("chi2", "chi2:width=mean"),
        ("intersection", "intersection"),
        ("distance:from=D", "distance:width=mean,from=D"),
        ("distance:view=D", "distance:width=mean,from=D"),
        ("spectrum", "spectrum:k=3"),
        ("weighted-degree", "weighted-degree:degree=10,shift=0"),
        ("precomputed", "precomputed"),
        ("product:of=a*b", "product:of=a*b"),
        ("product:of=a+b", "product:of=a*b"),
        ("sum:of=a*b", "sum:of=a+b"),
        (
            " rbf : width = 0.5 * mean , view = x ",
            "rbf:width=mean*0.5,view=x",
        ),
        ("rbf:width=mean*1/4", "rbf:width=mean*0.25"),
        ("rbf:width=mean/4", "rbf:width=mean*0.25"),
        ("rbf:width=median*2", "rbf:width=median*2"),
        ("rbf:width=1/8", "rbf:width=0.125"),
        ("rbf:gamma=1e-7", "rbf:gamma=1e-7"),
        ("rbf:normalize=none", "rbf:width=mean"),
        (
            "linear:name=\"a,b|\\\"c\\\\\"",
            "linear:name=\"a,b|\\\"c\\\\\"",
        ),
        (
            "product:of=\"x/rbf(mean*2)\"*b",
            "product:of=\"x/rbf(mean*2)\"*b",
        ),
    ] {
        assert_eq!(one(short).to_string(), long);
    }
    assert_eq!(
        one("rbf:width=mean*1/3").kind,
        KernelSpec::rbf(Width::Mean(1.0 / 3.0)).kind
    );
    assert_eq!(
        one("sum:of=a+\"b+c\",group=g,name=n,normalize=trace"),
        KernelSpec {
            group: Some("g".into()),
            ..KernelSpec::sum(vec!["a".into(), "b+c".into()])
                .named("n")
                .normalized(Normalize::Trace)
        }
    );
}

#[test]
fn bars_make_all_combinations() {
    let specs = KernelSpec::parse("poly:degree=2|3,coef0=0|1,name=p").unwrap();
    let names = names(&specs);
    assert_eq!(names, ["p(2,0)", "p(2,1)", "p(3,0)", "p(3,1)"]);
    assert_eq!(specs[1].kind, KernelSpec::poly(2, 1.0, 1.0).kind);
    assert_eq!(
        KernelSpec::parse("rbf:width=mean|median|0.5,view=x|y")
            .unwrap()
            .len(),
        6
    );
    assert_eq!(
        KernelSpec::parse("linear:view=x|\"y|z\"").unwrap()[1]
            .view
            .as_deref(),
        Some("y|z")
    );
    let many = format!("rbf:width={0},view={0}", "1|".repeat(400) + "1");
    assert!(message(KernelSpec::parse(&many)).contains("at most 100000"));
}

#[test]
fn mistakes_are_named_with_what_is_allowed() {
    for (spec, sentence) in [
        (
            "",
            "kernel '': there is no kind of kernel ''; the kinds are linear, poly, rbf, laplacian, chi2, intersection, distance, spectrum, weighted-degree, precomputed, product, sum and power",
        ),
        ("gaussian", "did you mean 'rbf'?"),
        ("weighted_degree", "did you mean 'weighted-degree'?"),
        (
            "rbf:wdth=3",
            "kernel 'rbf:wdth=3': there is no key 'wdth'; rbf knows width, gamma, view, name, group and normalize; did you mean 'width'?",
        ),
        ("rbf:sigma=3", "did you mean 'width'?"),
        (
            "rbf:width=meen",
            "kernel 'rbf:width=meen': width is 'meen'; width must be a number, mean, median, or one of these times a number, as in mean*0.5; did you mean 'mean'?",
        ),
        ("rbf:width=0", "width is 0; width must be a number above 0"),
        ("rbf:width=mean*-1", "width must be a number above 0"),
        ("rbf:width=nan", "width is 'nan'"),
        ("rbf:width=1e999", "width is '1e999'"),
        ("rbf:gamma=1/0", "gamma is '1/0'"),
        ("rbf:width=1,gamma=1", "both width and gamma are given"),
        ("rbf:width=1,width=2", "width is given twice"),
        ("rbf:width", "'width' is not a key with a value"),
        ("rbf:width=1,", "'' is not a key with a value"),
        (
            "poly:degree=0",
            "degree is 0; degree must be between 1 and 100",
        ),
        (
            "poly:degree=1000000",
            "degree must be a whole number from 1 to 100",
        ),
        ("poly:degree=2.5", "a whole number"),
        ("poly:degree=-1", "a whole number from 1 to 100"),
        (
            "poly:coef0=-1",
            "coef0 is -1; coef0 must be 0 or more (below 0 the kernel matrix is not positive semidefinite)",
        ),
        ("spectrum:k=0", "k is 0; k must be 1 or more"),
        ("spectrum:k=-1", "k is '-1'"),
        ("weighted-degree:degree=0", "degree must be 1 or more"),
        (
            "linear:normalize=sphere",
            "normalize is 'sphere'; normalize must be one of none, spherical, multiplicative, trace and center",
        ),
        ("linear:normalize=cosine", "did you mean 'spherical'?"),
        ("linear:name=", "name is empty"),
        ("linear:name=\"a", "a quote is not closed"),
        ("linear:name=a\"b\"", "do not stand around it"),
        ("linear:from=K", "there is no key 'from'"),
        (
            "product:of=a",
            "of names 1 kernels; a product needs at least two",
        ),
        ("product", "of names 0 kernels"),
        ("sum:of=a+b*c", "mixes * and +"),
        ("product:of=a*b,view=x", "there is no key 'view'"),
        ("distance:from=a,view=b", "both from and view"),
    ] {
        let found = message(KernelSpec::parse(spec));
        assert!(found.contains(sentence), "{spec}: {found}");
        assert!(!found.contains('\n'), "{found}");
    }
}

#[test]
fn a_file_of_tables_is_the_same_as_spec_strings() {
    let file = r#"
        [[kernel]]
        kind = "poly"
        degree = [2, 3]
        coef0 = 0.5
        view = "a|b"

        [[kernel]]
        kind = "rbf"
        width = "mean*1/2|median"

        [[kernel]]
        kind = "product"
        of = ["x*y", "z"]
        name = "p"

        [[kernel]]
        kind = "sum"
        of = "x+y"
    "#;
    let specs = KernelSpec::parse_toml(file).unwrap();
    let strings = [
        "poly:degree=2|3,coef0=0.5,view=\"a|b\"",
        "rbf:width=mean*0.5|median",
        "product:of=\"x*y\"*z,name=p",
        "sum:of=x+y",
    ];
    let same: Vec<KernelSpec> = strings
        .iter()
        .flat_map(|spec| KernelSpec::parse(spec).unwrap())
        .collect();
    assert_eq!(specs, same);
    for (file, sentence) in [
        (
            "[[kernel]]\nkind = \"rbf\nwidth = 2",
            "line 2: this is not TOML",
        ),
        ("", "there is no kernel in it"),
        (
            "[kernel]\nkind = \"rbf\"",
            "write [[kernel]] before each kernel",
        ),
        (
            "[[kernels]]\nkind = \"rbf\"",
            "there is no key 'kernels' at the top of the file; write [[kernel]] tables; did you mean 'kernel'?",
        ),
        (
            "[[kernel]]\nkind = \"rbf\"\n[[kernel]]\nwidth = 1",
            "kernel 2: it has no kind",
        ),
        (
            "[[kernel]]\nkind = \"rbf\"\nwidth = true",
            "kernel 1: width holds a boolean; give a string or a number",
        ),
        (
            "[[kernel]]\nkind = \"rbf\"\nwidth = nan",
            "kernel 1: width is NaN",
        ),
        (
            "[[kernel]]\nkind = \"rbf\"\nwidth = []",
            "width is an empty list",
        ),
        ("[[kernel]]\nkind = \"spectrum\"\nk = -3", "k is '-3'"),
    ] {
        let found = message(KernelSpec::parse_toml(file));
        assert!(found.contains(sentence), "{file}: {found}");
        assert!(!found.contains('\n'), "{found}");
    }
}

#[test]
fn the_form_in_model_files_is_flat_and_stays_as_it_is() {
    for (spec, json) in [
        (
            "rbf:width=mean*0.5,view=x,normalize=trace",
            r#"{"kind":"rbf","width":"mean*0.5","view":"x","normalize":"trace"}"#,
        ),
        ("laplacian:width=0.1", r#"{"kind":"laplacian","width":0.1}"#),
        ("chi2:gamma=2", r#"{"kind":"chi2","gamma":2.0}"#),
        (
            "poly:degree=3",
            r#"{"kind":"poly","degree":3,"coef0":1.0,"gamma":1.0}"#,
        ),
        (
            "weighted-degree:shift=1,name=n,group=g",
            r#"{"kind":"weighted-degree","degree":10,"shift":1,"name":"n","group":"g"}"#,
        ),
        ("precomputed:from=K", r#"{"kind":"precomputed","from":"K"}"#),
        ("sum:of=a+b", r#"{"kind":"sum","of":["a","b"]}"#),
    ] {
        assert_eq!(serde_json::to_string(&one(spec)).unwrap(), json);
        assert_eq!(serde_json::from_str::<KernelSpec>(json).unwrap(), one(spec));
    }
    let error = serde_json::from_str::<KernelSpec>(r#"{"kind":"rbf","width":-1}"#)
        .unwrap_err()
        .to_string();
    assert!(error.contains("width must be a number above 0"), "{error}");
    assert!(serde_json::from_str::<KernelSpec>(r#"{"width":1}"#).is_err());
}

#[test]
fn expanding_gives_views_names_and_groups() {
    let specs: Vec<KernelSpec> = [
        "rbf:width=mean*0.5|mean*0.5",
        "linear:name=lin",
        "spectrum",
        "precomputed",
        "poly:view=lower,group=g,coef0=1/3",
        "product:of=\"lower/lin\"*K",
        "sum:of=\"lower/lin\"+\"lower/rbf(mean*0.5)\"",
    ]
    .iter()
    .flat_map(|spec| KernelSpec::parse(spec).unwrap())
    .collect();
    let all = expand(&specs, &views()).unwrap();
    assert_eq!(
        names(&all),
        [
            "upper_left/rbf(mean*0.5)",
            "lower/rbf(mean*0.5)",
            "upper_left/rbf(mean*0.5)#2",
            "lower/rbf(mean*0.5)#2",
            "upper_left/lin",
            "lower/lin",
            "dna/spectrum(3)",
            "K",
            "lower/poly(2,coef0=0.3333)",
            "lower/lin*K",
            "lower/lin+lower/rbf(mean*0.5)",
        ]
    );
    let groups: Vec<&str> = all
        .iter()
        .map(|spec| spec.group.as_deref().unwrap())
        .collect();
    assert_eq!(
        groups,
        [
            "upper_left",
            "lower",
            "upper_left",
            "lower",
            "upper_left",
            "lower",
            "dna",
            "K",
            "g",
            "lower/lin*K",
            "lower"
        ]
    );
    assert_eq!(
        expand(&all, &views()).unwrap(),
        all,
        "expanding again changes nothing"
    );
}

#[test]
fn what_cannot_be_expanded_is_said() {
    let failed = |specs: &[&str], views: &Views| {
        let specs: Vec<KernelSpec> = specs
            .iter()
            .flat_map(|spec| KernelSpec::parse(spec).unwrap())
            .collect();
        message(expand(&specs, views))
    };
    let all = views();
    let only_strings = Views::new(
        all.iter()
            .filter(|view| view.name == "dna")
            .cloned()
            .collect(),
    )
    .unwrap();
    assert_eq!(
        failed(&["rbf:view=lowr"], &all),
        "kernel 'rbf:width=mean,view=lowr': there is no view 'lowr'; the views are upper_left, lower, dna and K; did you mean 'lower'?"
    );
    assert_eq!(
        failed(&["spectrum:view=lower"], &all),
        "kernel 'spectrum:k=3,view=lower': spectrum needs strings but view 'lower' is dense numbers; name another view or kind of kernel"
    );
    assert_eq!(
        failed(&["linear"], &only_strings),
        "kernel 'linear': linear needs numbers (a dense or sparse view) but there is no such view; the views are 'dna' (strings)"
    );
    assert!(
        failed(&["linear:view=lower,name=a", "rbf:view=lower,name=a"], &all)
            .contains("another kernel called 'a'")
    );
    assert!(
        failed(&["product:of=a*b", "linear:view=lower,name=a"], &all)
            .contains("'a' comes after it")
    );
    assert!(
        failed(&["linear:view=lower,name=abc", "product:of=abd*abc"], &all)
            .contains("did you mean 'abc'?")
    );
    assert!(failed(&["product:of=a*a,name=a"], &all).contains("it is made of itself"));
}

#[test]
fn the_default_bank_fits_the_views() {
    let views = views();
    let bank = expand(&default_bank(&views), &views).unwrap();
    assert_eq!(bank.len(), 6 + 6 + 2 + 1);
    assert_eq!(
        names(&bank[9..]),
        [
            "lower/rbf(mean)",
            "lower/rbf(mean*2)",
            "lower/rbf(mean*4)",
            "dna/spectrum(3,spherical)",
            "dna/weighted-degree(10,spherical)",
            "K"
        ]
    );
    for kernel in &bank {
        assert!(
            kernel
                .kind
                .applies_to(&views.get(kernel.view.as_ref().unwrap()).unwrap().data)
        );
    }
    let words = default_bank_in_words(&views);
    for part in [
        "linear kernel on rows of unit length",
        "1/4, 1/2, 1, 2 and 4",
        "spectrum",
        "weighted-degree",
        "given matrix",
    ] {
        assert!(words.contains(part), "{words}");
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "\\PC{1,12}", "[ \"\\\\,|:=*+\n]{1,6}"]
}

fn any_positive() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1.0), 1e-3..1e3_f64, any::<f64>().prop_map(f64::abs)]
        .prop_filter("positive", |x| x.is_finite() && *x > 0.0)
}

fn any_parameter(key: &Key) -> BoxedStrategy<Parameter> {
    match key.holds {
        Holds::Count { least, most } => (least..=most.min(1000))
            .prop_map(|count| Parameter::Count(u64::from(count)))
            .boxed(),
        Holds::Positive => any_positive().prop_map(Parameter::Number).boxed(),
        Holds::NotNegative => prop_oneof![Just(0.0), any_positive()]
            .prop_map(Parameter::Number)
            .boxed(),
        Holds::Width => (any_positive(), 0..4)
            .prop_map(|(x, which)| {
                Parameter::Width(match which {
                    0 => Width::Mean(x),
                    1 => Width::Median(x),
                    2 => Width::Value(x),
                    _ => Width::Gamma(x),
                })
            })
            .boxed(),
        Holds::Names => prop::collection::vec(any_name(), 2..4)
            .prop_map(Parameter::Names)
            .boxed(),
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(KINDS).prop_flat_map(|info| {
        let parameters: Vec<_> = info.keys.iter().map(any_parameter).collect();
        parameters.prop_map(move |parameters| {
            let known = KINDS.iter().find(|known| known.name == info.name);
            Kind::new(known.expect("a kind of the table"), parameters)
        })
    })
}

fn any_spec() -> impl Strategy<Value = KernelSpec> {
    let name = || prop::option::of(any_name());
    (
        any_kind(),
        name(),
        name(),
        name(),
        prop::sample::select(&Normalize::ALL[..]),
    )
        .prop_map(|(kind, view, name, group, normalize)| KernelSpec {
            view: view.filter(|_| !kind.is_composite()),
            kind,
            name,
            group,
            normalize,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_spelling_is_read_back(spec in any_spec()) {
        let text = spec.to_string();
        prop_assert_eq!(&KernelSpec::parse(&text).unwrap(), std::slice::from_ref(&spec), "{}", text);
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(&serde_json::from_str::<KernelSpec>(&json).unwrap(), &spec, "{}", json);
        let toml = KernelSpec::to_toml(&[spec.clone(), spec.clone()]);
        prop_assert_eq!(&KernelSpec::parse_toml(&toml).unwrap(), &[spec.clone(), spec], "{}", toml);
    }

    #[test]
    fn no_string_makes_it_panic(
        text in prop_oneof![
            "\\PC{0,60}",
            "(rbf|poly|sum|spectrum|distance)(:((width|of|k|degree|name|view|gamma)=[a-z0-9.*+/|\"\\\\ -]{0,12},?){0,4})?",
        ],
    ) {
        match KernelSpec::parse(&text) {
            Ok(specs) => {
                for spec in specs {
                    let again = spec.to_string();
                    prop_assert_eq!(&KernelSpec::parse(&again).unwrap(), std::slice::from_ref(&spec), "{} → {}", text, again);
                }
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }

    #[test]
    fn no_file_makes_it_panic(
        text in prop_oneof![
            "\\PC{0,60}",
            "\\[\\[kernel\\]\\]\nkind = \"(rbf|poly|sum)\"\n((width|of|degree|name) = (\"[a-z*|]{0,5}\"|[0-9.-]{1,4}|\\[[\"a-z,0-9]{0,8}\\])\n){0,3}",
        ],
    ) {
        if let Err(error) = KernelSpec::parse_toml(&text) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
}
