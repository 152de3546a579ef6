//! The `.npy` format: a header in Python's notation, then the elements.
//!
//! Nothing is allocated from a size in the header before it was compared with the bytes that are really there.

use super::budget::Budget;
use super::npy_header::Parser;
use super::source::{Input, Source, read_failed};
use half::f16;
use multikernel::error::{Error, Result};
use std::io::{self, BufReader, Read};

/// NumPy itself refuses headers above 10,000 bytes; only structured types, which are not numbers, need more.
const LONGEST_HEADER: usize = 1 << 16;
/// Elements converted at a time.
const CHUNK: usize = 1 << 14;

/// The element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    /// Width in bytes: 1, 2, 4, 8.
    Signed(usize),
    Unsigned(usize),
    /// Width in bytes: 2, 4, 8.
    Float(usize),
    /// Characters of four bytes.
    Unicode(usize),
    /// Bytes, padded by zeros.
    Bytes(usize),
}

impl Element {
    fn width(self) -> usize {
        match self {
            Element::Bool => 1,
            Element::Signed(w) | Element::Unsigned(w) | Element::Float(w) | Element::Bytes(w) => w,
            Element::Unicode(chars) => 4 * chars,
        }
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self, Element::Unicode(_) | Element::Bytes(_))
    }
}

/// What a `.npy` file says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) element: Element,
    pub(super) big_endian: bool,
    pub(super) fortran: bool,
    pub(super) shape: Vec<usize>,
    /// Where the elements begin.
    pub(super) offset: u64,
}

/// Opens an array, whose elements then follow.
pub(super) fn open<'a>(source: &Source<'a>) -> Result<(Header, BufReader<Input<'a>>)> {
    let mut input = BufReader::with_capacity(1 << 16, source.open()?);
    let header = Header::read(&mut input, &source.name, source.length)?;
    Ok((header, input))
}

impl Header {
    /// Reads the header of a file of `length` bytes.
    pub(super) fn read(input: &mut impl Read, place: &str, length: u64) -> Result<Self> {
        let bad = |found: &str| {
            Error::input(
                place,
                found,
                "write the array again with numpy.save or numpy.savez",
            )
        };
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::UnexpectedEof => bad("the file ends inside the .npy header"),
            _ => read_failed(place, e),
        };
        let mut start = [0; 8];
        input.read_exact(&mut start).map_err(failed)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err(bad("this is not a .npy array"));
        }
        let (size, prefix) = match start[6] {
            1 => {
                let mut size = [0; 2];
                input.read_exact(&mut size).map_err(failed)?;
                (u16::from_le_bytes(size) as usize, 10)
            }
            2 | 3 => {
                let mut size = [0; 4];
                input.read_exact(&mut size).map_err(failed)?;
                (u32::from_le_bytes(size) as usize, 12)
            }
            other => {
                return Err(bad(&format!(
                    "version {other} of the .npy format is not known"
                )));
            }
        };
        if size > LONGEST_HEADER {
            return Err(bad(&format!("the .npy header claims {size} bytes")));
        }
        let mut text = vec![0; size];
        input.read_exact(&mut text).map_err(failed)?;
        let text = std::str::from_utf8(&text).map_err(|_| bad("the .npy header is not text"))?;
        let header = Parser { rest: text.trim() }
            .header((prefix + size) as u64)
            .map_err(|found| bad(&found))?;
        header.check_length(place, length)?;
        Ok(header)
    }

    fn check_length(&self, place: &str, length: u64) -> Result<()> {
        let there = length.saturating_sub(self.offset);
        let promised = self
            .shape
            .iter()
            .try_fold(self.element.width() as u64, |size, &d| {
                size.checked_mul(d as u64)
            })
            .filter(|&bytes| usize::try_from(bytes).is_ok());
        match promised {
            Some(bytes) if bytes <= there => Ok(()),
            Some(bytes) => Err(Error::input(
                place,
                format!(
                    "the header promises an array of shape {} with {bytes} bytes but {there} bytes follow",
                    self.shape_text()
                ),
                "the file is truncated or damaged: copy or write it again",
            )),
            None => Err(Error::input(
                place,
                format!(
                    "the header promises an array of shape {}, more than a file can hold",
                    self.shape_text()
                ),
                "the file is damaged: write it again",
            )),
        }
    }

    /// The number of elements; [`Header::read`] has proved that it fits.
    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The shape as NumPy writes it.
    pub(super) fn shape_text(&self) -> String {
        let parts: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        match parts.len() {
            1 => format!("({},)", parts[0]),
            _ => format!("({})", parts.join(", ")),
        }
    }

    /// Hands over the numbers in the order of the file, in chunks, with the position of the first; each is
    /// finite.
    pub(super) fn numbers(
        &self,
        input: &mut impl Read,
        place: &str,
        mut take: impl FnMut(usize, &[f64]) -> Result<()>,
    ) -> Result<()> {
        let mut numbers = Vec::with_capacity(CHUNK);
        self.chunks(input, place, |first, bytes| {
            numbers.clear();
            self.decode(bytes, &mut numbers);
            if let Some(k) = numbers.iter().position(|v| !v.is_finite()) {
                return Err(self.not_finite(place, first + k, numbers[k]));
            }
            take(first, &numbers)
        })
    }

    /// Whole numbers as they are, where the elements are such and wide enough to lose digits as [`Header::numbers`].
    pub(super) fn wholes(
        &self,
        input: &mut impl Read,
        place: &str,
        mut take: impl FnMut(i128) -> Result<()>,
    ) -> Result<()> {
        let (big, signed) = (self.big_endian, self.element == Element::Signed(8));
        self.chunks(input, place, |_, bytes| {
            bytes.as_chunks::<8>().0.iter().try_for_each(|&word| {
                let bits = if big {
                    u64::from_be_bytes(word)
                } else {
                    u64::from_le_bytes(word)
                };
                take(if signed {
                    i128::from(bits as i64)
                } else {
                    i128::from(bits)
                })
            })
        })
    }

    fn not_finite(&self, place: &str, at: usize, value: f64) -> Error {
        Error::input(
            format!("{place} {}", self.position(at)),
            format!("the value is {value}"),
            "give a finite number (remove the row, or fill in the missing value)",
        )
    }

    /// Numbers as they are stored by us.
    pub(super) fn singles(
        &self,
        input: &mut impl Read,
        place: &str,
        mut take: impl FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        let mut singles = Vec::with_capacity(CHUNK);
        if self.element == Element::Float(4) && !self.big_endian {
            // The form of large files, without the way through f64.
            return self.chunks(input, place, |first, bytes| {
                let (words, _) = bytes.as_chunks::<4>();
                singles.clear();
                singles.extend(words.iter().map(|&w| f32::from_le_bytes(w)));
                // No early exit: this loop is made of vector instructions.
                if singles.iter().fold(true, |ok, v| ok & v.is_finite()) {
                    return take(first, &singles);
                }
                let k = singles.iter().position(|v| !v.is_finite()).unwrap_or(0);
                Err(self.not_finite(place, first + k, f64::from(singles[k])))
            });
        }
        self.numbers(input, place, |first, numbers| {
            singles.clear();
            singles.extend(numbers.iter().map(|&v| v as f32));
            if let Some(k) = singles.iter().position(|v| !v.is_finite()) {
                return Err(Error::input(
                    format!("{place} {}", self.position(first + k)),
                    format!("the value {} is too large for single precision", numbers[k]),
                    "rescale it to below 3.4e38",
                ));
            }
            take(first, &singles)
        })
    }

    /// A matrix, row after row; the header must have two dimensions.
    pub(super) fn matrix(
        &self,
        input: &mut impl Read,
        place: &str,
        budget: &mut Budget,
    ) -> Result<Vec<f32>> {
        let (rows, cols) = (self.shape[0], self.shape[1]);
        let mut values = Vec::new();
        budget.reserve_exact(&mut values, self.elements(), place)?;
        if self.fortran {
            values.resize(self.elements(), 0.0);
            self.singles(input, place, |first, singles| {
                let (mut i, mut j) = (first % rows, first / rows);
                for &v in singles {
                    values[i * cols + j] = v;
                    i += 1;
                    if i == rows {
                        i = 0;
                        j += 1;
                    }
                }
                Ok(())
            })?;
        } else {
            self.singles(input, place, |_, singles| {
                values.extend_from_slice(singles);
                Ok(())
            })?;
        }
        Ok(values)
    }

    /// Text elements as bytes (Unicode becomes UTF-8), in the order of the file.
    pub(super) fn texts(
        &self,
        input: &mut impl Read,
        place: &str,
        budget: &mut Budget,
    ) -> Result<Vec<Vec<u8>>> {
        let width = self.element.width();
        let mut out: Vec<Vec<u8>> = Vec::new();
        budget.reserve_exact(&mut out, self.elements(), place)?;
        if width == 0 {
            out.resize(self.elements(), Vec::new());
            return Ok(out);
        }
        self.chunks(input, place, |first, bytes| {
            for (k, element) in bytes.chunks_exact(width).enumerate() {
                let text = match self.element {
                    Element::Unicode(_) => self.utf8(element).ok_or_else(|| {
                        Error::input(
                            format!("{place} {}", self.position(first + k)),
                            "the text is not Unicode",
                            "write the array again",
                        )
                    })?,
                    _ => {
                        let end = element.iter().rposition(|&b| b != 0).map_or(0, |e| e + 1);
                        element[..end].to_vec()
                    }
                };
                budget.charge(place, text.len() as u64)?;
                out.push(text);
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn utf8(&self, element: &[u8]) -> Option<Vec<u8>> {
        let (points, _) = element.as_chunks::<4>();
        let text: Option<String> = points
            .iter()
            .map(|&p| {
                char::from_u32(if self.big_endian {
                    u32::from_be_bytes(p)
                } else {
                    u32::from_le_bytes(p)
                })
            })
            .collect();
        Some(text?.trim_end_matches('\0').as_bytes().to_vec())
    }

    /// The bytes of whole elements, a chunk at a time.
    fn chunks(
        &self,
        input: &mut impl Read,
        place: &str,
        mut take: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let width = self.element.width();
        let total = self.elements();
        let at_once = (CHUNK * 8 / width.max(1)).clamp(1, CHUNK);
        let mut buffer = vec![0; at_once.min(total) * width];
        let mut done = 0;
        while done < total {
            let now = at_once.min(total - done);
            let bytes = &mut buffer[..now * width];
            input.read_exact(bytes).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => Error::input(
                    place,
                    format!(
                        "the data ends before the array of shape {} is complete",
                        self.shape_text()
                    ),
                    "the file is truncated or damaged: copy or write it again",
                ),
                _ => read_failed(place, e),
            })?;
            take(done, bytes)?;
            done += now;
        }
        Ok(())
    }

    fn decode(&self, bytes: &[u8], out: &mut Vec<f64>) {
        macro_rules! each {
            ($number:ty, $width:literal, $to:expr) => {{
                let (words, _) = bytes.as_chunks::<$width>();
                if self.big_endian {
                    out.extend(words.iter().map(|&w| $to(<$number>::from_be_bytes(w))));
                } else {
                    out.extend(words.iter().map(|&w| $to(<$number>::from_le_bytes(w))));
                }
            }};
        }
        match self.element {
            Element::Bool => out.extend(bytes.iter().map(|&b| f64::from(b != 0))),
            Element::Signed(1) => each!(i8, 1, f64::from),
            Element::Signed(2) => each!(i16, 2, f64::from),
            Element::Signed(4) => each!(i32, 4, f64::from),
            Element::Signed(_) => each!(i64, 8, |v| v as f64),
            Element::Unsigned(1) => each!(u8, 1, f64::from),
            Element::Unsigned(2) => each!(u16, 2, f64::from),
            Element::Unsigned(4) => each!(u32, 4, f64::from),
            Element::Unsigned(_) => each!(u64, 8, |v| v as f64),
            Element::Float(2) => each!(f16, 2, f64::from),
            Element::Float(4) => each!(f32, 4, f64::from),
            Element::Float(_) => each!(f64, 8, |v| v),
            Element::Unicode(_) | Element::Bytes(_) => {}
        }
    }

    /// Where an element of the file is, for people: counted from 1.
    fn position(&self, mut at: usize) -> String {
        let mut index = vec![0; self.shape.len()];
        let axes: Vec<usize> = if self.fortran {
            (0..self.shape.len()).collect()
        } else {
            (0..self.shape.len()).rev().collect()
        };
        for axis in axes {
            index[axis] = at % self.shape[axis].max(1) + 1;
            at /= self.shape[axis].max(1);
        }
        match index[..] {
            [row] => format!("row {row}"),
            [row, column] => format!("row {row}, column {column}"),
            _ => format!("entry {index:?}"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A .npy file of version 1 with any header text and data.
    pub(crate) fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let fortran = if fortran { "True" } else { "False" };
        let text =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(data);
        out
    }

    fn matrix(bytes: &[u8]) -> Result<(Header, Vec<f32>)> {
        let mut input = bytes;
        let header = Header::read(&mut input, "x.npy", bytes.len() as u64)?;
        let values = header.matrix(&mut input, "x.npy", &mut Budget::new(None))?;
        Ok((header, values))
    }

    #[test]
    fn every_element_type_in_either_byte_order() {
        macro_rules! check {
            ($descr:literal, $number:ty, $from:expr) => {
                let numbers: Vec<$number> = [1i8, 2, 3, 4].into_iter().map($from).collect();
                for (order, big) in [("<", false), (">", true)] {
                    let data: Vec<u8> = numbers
                        .iter()
                        .flat_map(|v| {
                            if big {
                                v.to_be_bytes()
                            } else {
                                v.to_le_bytes()
                            }
                        })
                        .collect();
                    let descr = format!("{order}{}", $descr);
                    let (_, values) = matrix(&file(&descr, false, "(2, 2)", &data)).unwrap();
                    assert_eq!(values, [1.0, 2.0, 3.0, 4.0], "{descr}");
                    let (_, values) = matrix(&file(&descr, true, "(2, 2)", &data)).unwrap();
                    assert_eq!(values, [1.0, 3.0, 2.0, 4.0], "{descr} Fortran");
                }
            };
        }
        check!("i1", i8, |v| v);
        check!("i2", i16, i16::from);
        check!("i4", i32, i32::from);
        check!("i8", i64, i64::from);
        check!("u1", u8, |v| v as u8);
        check!("u2", u16, |v| v as u16);
        check!("u4", u32, |v| v as u32);
        check!("u8", u64, |v| v as u64);
        check!("f2", f16, |v: i8| f16::from_f32(f32::from(v)));
        check!("f4", f32, f32::from);
        check!("f8", f64, f64::from);
        let (_, values) = matrix(&file("|b1", false, "(1, 3)", &[0, 1, 1])).unwrap();
        assert_eq!(values, [0.0, 1.0, 1.0]);
    }

    #[test]
    fn later_versions_and_text() {
        let body = "{\"descr\": \"<U2\", \"shape\": (2L,), \"fortran_order\": False}\n";
        for version in [2u8, 3] {
            let mut bytes = b"\x93NUMPY".to_vec();
            bytes.extend_from_slice(&[version, 0]);
            bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
            bytes.extend_from_slice(body.as_bytes());
            for c in ['é', '\0', 'a', 'b'] {
                bytes.extend_from_slice(&(c as u32).to_le_bytes());
            }
            let mut input = bytes.as_slice();
            let header = Header::read(&mut input, "y.npy", bytes.len() as u64).unwrap();
            let texts = header
                .texts(&mut input, "y.npy", &mut Budget::new(None))
                .unwrap();
            assert_eq!(texts, ["é".as_bytes(), b"ab"]);
        }
        let bytes = file("|S3", false, "(2,)", b"ab\0xyz");
        let mut input = bytes.as_slice();
        let header = Header::read(&mut input, "y.npy", bytes.len() as u64).unwrap();
        let texts = header
            .texts(&mut input, "y.npy", &mut Budget::new(None))
            .unwrap();
        assert_eq!(texts, [b"ab".as_slice(), b"xyz"]);
    }

    #[test]
    fn bad_headers_are_sentences() {
        let said = |bytes: &[u8]| matrix(bytes).unwrap_err().to_string();
        assert!(said(b"\x93NUM").starts_with("x.npy: the file ends inside the .npy header"));
        assert!(said(b"PK\x03\x04 something").starts_with("x.npy: this is not a .npy array"));
        assert!(
            said(b"\x93NUMPY\x09\x00....").contains("version 9 of the .npy format is not known")
        );
        assert!(said(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("claims 4294967295 bytes"));
        assert!(said(&file("<c8", false, "(1, 1)", &[0; 8])).contains("of type '<c8'"));
        assert!(said(&file("<f4", false, "(-1, 1)", &[])).contains("where a size was expected"));
        assert_eq!(
            said(&file("<f4", false, "(1000, 1000)", &[0; 12])),
            "x.npy: the header promises an array of shape (1000, 1000) with 4000000 bytes but 12 bytes follow; \
             the file is truncated or damaged: copy or write it again"
        );
        assert_eq!(
            said(&file("<f8", false, "(4294967296, 4294967296)", &[0; 8])),
            "x.npy: the header promises an array of shape (4294967296, 4294967296), more than a file can hold; \
             the file is damaged: write it again"
        );
        let data: Vec<u8> = [1.0f32, f32::NAN]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert!(
            said(&file("<f4", false, "(1, 2)", &data))
                .starts_with("x.npy row 1, column 2: the value is NaN")
        );
        assert!(
            said(&file("<f4", true, "(2, 1)", &data))
                .starts_with("x.npy row 2, column 1: the value is NaN")
        );
        let data = 1e300f64.to_le_bytes();
        assert!(
            said(&file("<f8", false, "(1, 1)", &data)).contains("too large for single precision")
        );
    }
}
