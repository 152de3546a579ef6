//! Lines of a source, counted.

use std::io::{self, BufRead};

/// Bytes of a line, at most: a longer one is no example.
const LONGEST_LINE: usize = 64 << 20;

/// Lines of anything that gives bytes, each with its number; never more than one is held.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    number: u64,
}

/// What [`LineReader::read`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamLine {
    /// A line, of this number from 1.
    Line(u64),
    /// A line of this number that is too long for an example; it was passed over.
    TooLong(u64),
    /// There is no more.
    End,
}

impl<R: BufRead> LineReader<R> {
    /// Lines from the start of `source`, the first being number `before` + 1.
    pub fn new(source: R, before: u64) -> Self {
        LineReader {
            source,
            number: before,
        }
    }

    /// The next line into `line`, without its end.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn read(&mut self, line: &mut Vec<u8>) -> io::Result<StreamLine> {
        line.clear();
        let (mut any, mut long) = (false, false);
        loop {
            let piece = match self.source.fill_buf() {
                Ok(piece) => piece,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if piece.is_empty() {
                break;
            }
            any = true;
            let end = piece.iter().position(|b| *b == b'\n');
            let taken = end.map_or(piece.len(), |end| end + 1);
            let text = &piece[..end.unwrap_or(taken)];
            if line.len() + text.len() > LONGEST_LINE {
                long = true;
                line.clear();
            }
            if !long {
                line.extend_from_slice(text);
            }
            self.source.consume(taken);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(StreamLine::End);
        }
        self.number += 1;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(match long {
            true => StreamLine::TooLong(self.number),
            false => StreamLine::Line(self.number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_may_end_anyhow() {
        let mut reader = LineReader::new(&b"a\r\n\nlast"[..], 4);
        let mut line = Vec::new();
        assert_eq!(reader.read(&mut line).unwrap(), StreamLine::Line(5));
        assert_eq!(line, b"a");
        assert_eq!(reader.read(&mut line).unwrap(), StreamLine::Line(6));
        assert!(line.is_empty());
        assert_eq!(reader.read(&mut line).unwrap(), StreamLine::Line(7));
        assert_eq!(line, b"last");
        assert_eq!(reader.read(&mut line).unwrap(), StreamLine::End);
    }
}
