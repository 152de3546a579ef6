//! A model as one page of HTML: what was learned, how well, how certain, and how to get it again.
//!
//! The page is one file without anything from elsewhere: style, script and pictures are inside, and a policy in its head forbids
//! the browser to fetch anything. Without the script everything can be read; with it, kernels can be sorted and found. It is drawn
//! from the model alone, from its training value most of all (see [`Record`](multikernel::record::Record)): what is not there is left
//! out, or the page says how to get it. The same model gives the same page.

mod alike;
mod draw;
mod ending;
mod facts;
mod heat;
mod quality;
mod solving;
mod summary;
mod text;
mod weights;

use facts::Facts;
use multikernel::model::Model;
use text::esc;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Nothing is fetched, and of scripts only ours runs: its SHA-256. A test compares it.
const SCRIPT_HASH: &str = "sha256-os0rruGJ9xWwjwYiBShqD7QEpLK+GYSHdIg5ZdZ8TwQ=";

/// A part of the page.
struct Section {
    id: &'static str,
    /// In the list of sections.
    name: &'static str,
    title: String,
    /// What is to be seen, in a sentence or two.
    lead: String,
    body: String,
}

/// The report of a model.
///
/// ```
/// # use multikernel::data::{Targets, Task, digits};
/// # use multikernel::gram::{KernelSet, Options};
/// # use multikernel::kernel::KernelSpec;
/// # use multikernel::record::Record;
/// # use multikernel::record::ResultObject;
/// # use multikernel::Mkl;
/// # let data = digits()?;
/// # let rows: Vec<usize> = (0..100).collect();
/// # let (views, labels) = (data.views.select(&rows)?, data.labels.map(|l| l.select(&rows)));
/// # let kernels = KernelSet::new(&KernelSpec::parse("rbf")?, &views, &Options::default(), &())?;
/// # let targets = Targets::new(labels.as_ref(), Task::Classify, views.len())?;
/// let fitted = Mkl::default().fit(&kernels, &targets, &())?;
/// let training = Record::new(&fitted).beside(&ResultObject::new(&fitted));
/// let mut model = fitted.model;
/// model.set_training(training.unwrap_or_default());
/// let page = multikernel_report::html(&model);
/// assert!(page.starts_with("<!DOCTYPE html>"));
/// # Ok::<(), multikernel::Error>(())
/// ```
pub fn html(model: &Model) -> String {
    let facts = Facts::new(model);
    let (title, top) = summary::top(&facts);
    let sections: Vec<Section> = [
        Some(weights::section(&facts)),
        Some(quality::section(&facts)),
        solving::tuning(&facts),
        alike::section(&facts),
        solving::convergence(&facts),
        Some(ending::again(&facts)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let links: String = sections
        .iter()
        .map(|section| format!("<a href=\"#{}\">{}</a>", section.id, section.name))
        .collect();
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; img-src data:; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" content=\"multikernel {}\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        esc(env!("CARGO_PKG_VERSION"))
    );
    out.push_str(&format!(
        "<nav aria-label=\"Sections\"><div>{links}<a href=\"#glossary\">Words</a><button type=\"button\" class=\"js-only plain\" id=\"theme\" aria-label=\"switch between light and dark\">◐</button></div></nav>\n<main>\n"
    ));
    out.push_str(&top);
    out.push_str(&ending::warnings(&facts));
    for section in &sections {
        out.push_str(&format!(
            "\n<section id=\"{}\"><h2>{}</h2><p class=\"lead\">{}</p>{}</section>",
            section.id, section.title, section.lead, section.body
        ));
    }
    out.push_str(&ending::more(&facts));
    out.push_str(&ending::glossary(&facts));
    out.push_str(&format!(
        "\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_policy_knows_the_script() {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut base64 = String::new();
        // 32 bytes are ten times three, and two.
        for three in Sha256::digest(SCRIPT).chunks(3) {
            let bits = three.iter().fold(0u32, |bits, b| bits << 8 | u32::from(*b));
            let bits = bits << (8 * (3 - three.len()));
            for k in 0..=three.len() {
                base64.push(char::from(LETTERS[(bits >> (18 - 6 * k)) as usize & 63]));
            }
        }
        assert_eq!(
            SCRIPT_HASH,
            format!("sha256-{base64}="),
            "put this into SCRIPT_HASH"
        );
    }
}
