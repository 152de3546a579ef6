//! A line of LIBSVM text: `label index:value …`.

use super::super::libsvm;
use super::{StreamEvent, StreamExample, StreamParser, StreamRow};
use multikernel::error::{Error, Result};

impl StreamParser {
    pub(super) fn libsvm(&mut self, line: &[u8]) -> Result<Option<StreamEvent>> {
        let text = std::str::from_utf8(line).map_err(|_| {
            Error::input(
                "",
                "the line is not UTF-8",
                "give LIBSVM text: label index:value …",
            )
        })?;
        let text = text.split('#').next().unwrap_or("").trim();
        if text.is_empty() {
            return Ok(None);
        }
        let mut words = text.split_ascii_whitespace().peekable();
        let label = words.next_if(|word| !word.contains(':')).map(str::to_owned);
        let mut entries = words
            .filter(|word| !word.starts_with("qid:"))
            .map(|word| {
                libsvm::entry(word).map_err(|(found, remedy)| Error::input("", found, remedy))
            })
            .collect::<Result<Vec<(u32, f32)>>>()?;
        entries.sort_by_key(|e| e.0);
        if let Some(twice) = entries.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(Error::input(
                "",
                format!("index {} occurs twice", twice[0].0 + 1),
                "give every index at most once in a line",
            ));
        }
        if self.views.is_empty() {
            self.views.push((self.options.whole.clone(), None));
        }
        entries.retain(|e| e.1 != 0.0);
        let (columns, values) = entries.into_iter().unzip();
        Ok(Some(StreamEvent::Example(StreamExample {
            id: None,
            label,
            rows: vec![StreamRow::Sparse(columns, values)],
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{example, parser};
    use super::*;

    #[test]
    fn libsvm_lines_are_sparse_examples() {
        let mut parser = parser(None);
        let read = example(parser.line(b"+1 3:0.5 1:2 7:0 # text", 1).unwrap());
        assert_eq!(read.label.as_deref(), Some("+1"));
        assert_eq!(read.rows, [StreamRow::Sparse(vec![0, 2], vec![2.0, 0.5])]);
        assert_eq!(example(parser.line(b"2:1", 2).unwrap()).label, None);
        assert_eq!(parser.line(b"# only", 3).unwrap(), None);
        for bad in [
            "1 0:1",
            "1 1:1 1:2",
            "1 x:1",
            "1 1:x",
            "1 1:inf",
            "1 99999999999:1",
        ] {
            assert!(parser.line(bad.as_bytes(), 4).is_err(), "{bad}");
        }
    }
}
