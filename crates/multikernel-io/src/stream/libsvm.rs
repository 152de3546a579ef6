//! A line of LIBSVM text: `label index:value …`.

use super::super::libsvm;
use super::{StreamEvent, StreamExample, StreamParser, StreamRow};
use multikernel::error::Result;

impl StreamParser {
    pub(super) fn libsvm(&mut self, line: &[u8]) -> Result<Option<StreamEvent>> {
        let Some(read) = libsvm::parse(line)? else {
            return Ok(None);
        };
        if self.views.is_empty() {
            self.views.push((self.options.whole.clone(), None));
        }
        let entries = read.entries.into_iter().filter(|e| e.1 != 0.0);
        let (columns, values) = entries.unzip();
        Ok(Some(StreamEvent::Example(StreamExample {
            id: None,
            label: read.label.map(str::to_owned),
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
