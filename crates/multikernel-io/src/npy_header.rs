//! The header of `.npy`: Python's notation of a dictionary, read and written.

use super::npy::{Element, Header};

/// Any text element longer than this is taken for damage.
const LONGEST_TEXT: usize = 1 << 24;

/// The header is the notation of a Python dictionary with three known keys.
pub(super) struct Parser<'a> {
    pub(super) rest: &'a str,
}

impl<'a> Parser<'a> {
    pub(super) fn header(mut self, offset: u64) -> Result<Header, String> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.accept('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                other => return Err(format!("the .npy header has an unknown key '{other}'")),
            }
            if !self.accept(',') {
                self.expect('}')?;
                break;
            }
        }
        let missing = |key: &str| format!("the .npy header has no '{key}'");
        let (element, big_endian) = descr.ok_or_else(|| missing("descr"))?;
        Ok(Header {
            element,
            big_endian,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
            offset,
        })
    }

    fn accept(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.accept(wanted) {
            return Ok(());
        }
        let found: String = self.rest.chars().take(20).collect();
        Err(format!(
            "the .npy header has '{found}' where '{wanted}' was expected"
        ))
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept('"') {
            '"'
        } else {
            self.expect('\'')?;
            '\''
        };
        let end = self
            .rest
            .find(quote)
            .ok_or("a quote in the .npy header is not closed")?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("fortran_order in the .npy header is neither True nor False".into())
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            self.rest = self.rest.trim_start();
            let digits = self
                .rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(self.rest.len());
            let size = self.rest[..digits].parse().map_err(|_| {
                let found: String = self.rest.chars().take(20).collect();
                format!("the .npy header has '{found}' where a size was expected")
            })?;
            shape.push(size);
            self.rest = &self.rest[digits..];
            // Python 2 wrote long integers as 3L.
            self.accept('L');
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        if shape.len() > 32 {
            return Err(format!("the array has {} dimensions", shape.len()));
        }
        Ok(shape)
    }

    fn descr(&mut self) -> Result<(Element, bool), String> {
        const KNOWN: &str = "bool, int8…int64, uint8…uint64, float16…float64 or text is";
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('[') {
            return Err(format!(
                "the array has a structured type, where {KNOWN} understood"
            ));
        }
        let text = self.string()?;
        let unknown = || format!("the elements are of type '{text}', where {KNOWN} understood");
        let mut chars = text.chars();
        let order = chars.next().ok_or_else(unknown)?;
        let kind = chars.next().ok_or_else(unknown)?;
        let size: usize = chars.as_str().parse().map_err(|_| unknown())?;
        let big_endian = match order {
            '<' | '|' => false,
            '>' => true,
            '=' => cfg!(target_endian = "big"),
            _ => return Err(unknown()),
        };
        let element = match (kind, size) {
            ('b', 1) => Element::Bool,
            ('i', 1 | 2 | 4 | 8) => Element::Signed(size),
            ('u', 1 | 2 | 4 | 8) => Element::Unsigned(size),
            ('f', 2 | 4 | 8) => Element::Float(size),
            ('U', 0..=LONGEST_TEXT) => Element::Unicode(size),
            ('S' | 'a', 0..=LONGEST_TEXT) => Element::Bytes(size),
            _ => return Err(unknown()),
        };
        Ok((element, big_endian))
    }
}

/// A header of version 1 for f32 in C order, padded so that the elements begin at a multiple of 64 bytes.
pub(super) fn header_of_singles(shape: &[usize]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(|d| format!("{d},")).collect();
    let shape = sizes.join(" ");
    let shape = if sizes.len() > 1 {
        shape.trim_end_matches(',')
    } else {
        &shape
    };
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    // At most 32 sizes of 20 digits: far below 65536.
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn our_own_header_is_aligned_and_read_back() {
        for shape in [&[3][..], &[2, 3], &[1, 2, 3]] {
            let bytes = header_of_singles(shape);
            assert_eq!(bytes.len() % 64, 0);
            let length = bytes.len() as u64 + 1000;
            let header = Header::read(&mut bytes.as_slice(), "x", length).unwrap();
            assert_eq!(header.shape, shape);
            assert_eq!((header.element, header.fortran), (Element::Float(4), false));
            assert_eq!(header.offset, bytes.len() as u64);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), with_magic: bool) {
            let mut all = if with_magic { b"\x93NUMPY\x01\x00".to_vec() } else { Vec::new() };
            all.extend(bytes);
            let _ = Header::read(&mut all.as_slice(), "x", all.len() as u64);
        }
    }
}
