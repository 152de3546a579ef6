//! A look at the page headers of a Parquet column before it is decoded.
//!
//! The decoder takes memory for the sizes that page headers claim (up to 2 GiB for a page, more for a dictionary)
//! before it looks at the data. So the headers are walked through first; they are Thrift structures in the compact
//! protocol, of which only the sizes matter here.

use std::io::{self, Read};

/// Deeper structures are damage.
const DEEPEST: usize = 16;
/// No header is longer; statistics inside of it are short.
const LONGEST_HEADER: u64 = 16 << 20;

/// Types of the compact protocol.
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// What a page header claims.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageSizes {
    /// Bytes of the header itself.
    pub(super) header: u64,
    /// Bytes of the page in the file.
    pub(super) packed: i64,
    /// Bytes after decompression.
    pub(super) unpacked: i64,
    /// Values of a dictionary.
    pub(super) dictionary: i64,
}

impl PageSizes {
    /// Reads one header.
    pub(super) fn read(input: impl Read) -> io::Result<Self> {
        let mut sizes = PageSizes::default();
        let mut reader = Compact {
            input: input.take(LONGEST_HEADER),
            used: 0,
        };
        // PageHeader: 2 and 3 are the sizes, 7 the header of a dictionary page, in which 1 is the number of values.
        reader.fields(|reader, id, kind| match (id, kind) {
            (2, I32) => reader.zigzag().map(|v| sizes.unpacked = v),
            (3, I32) => reader.zigzag().map(|v| sizes.packed = v),
            (7, STRUCT) => reader.fields(|reader, id, kind| match (id, kind) {
                (1, I32) => reader.zigzag().map(|v| sizes.dictionary = v),
                _ => reader.skip(kind, 0),
            }),
            _ => reader.skip(kind, 0),
        })?;
        sizes.header = reader.used;
        Ok(sizes)
    }
}

struct Compact<R> {
    input: R,
    used: u64,
}

impl<R: Read> Compact<R> {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        self.used += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn zigzag(&mut self) -> io::Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Calls `take` for every field of a structure; it must read the field.
    fn fields(
        &mut self,
        mut take: impl FnMut(&mut Self, i64, u8) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            id = match head >> 4 {
                0 => self.zigzag()?,
                step => id.wrapping_add(i64::from(step)),
            };
            take(self, id, head & 0x0f)?;
        }
    }

    fn bytes(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.input).take(count), &mut io::sink())?;
        self.used += skipped;
        match skipped == count {
            true => Ok(()),
            false => Err(damaged()),
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(damaged());
        }
        match kind {
            // A boolean field is its own type; inside of a list it is a byte (see below).
            1 | 2 => Ok(()),
            3 => self.bytes(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.bytes(8),
            8 => {
                let length = self.varint()?;
                self.bytes(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    few => u64::from(few),
                };
                (0..count).try_for_each(|_| self.element(head & 0x0f, depth))
            }
            11 => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 0x0f, depth)
                })
            }
            12 => self.fields(|reader, _, kind| reader.skip(kind, depth + 1)),
            _ => Err(damaged()),
        }
    }

    /// An element takes at least a byte, so that a lying count ends with the input.
    fn element(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        match kind {
            1 | 2 => self.bytes(1),
            _ => self.skip(kind, depth + 1),
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a page header is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_among_other_fields() {
        // type=2 (i32), unpacked=300, packed=20, crc=-1, a dictionary header with 5 values, stop.
        let bytes = [
            0x15, 0x04, 0x15, 0xd8, 0x04, 0x15, 0x28, 0x15, 0x01, 0x3c, 0x15, 0x0a, 0x15, 0x00,
            0x11, 0x00, 0x00, 0xff,
        ];
        let sizes = PageSizes::read(&bytes[..]).unwrap();
        assert_eq!(
            sizes,
            PageSizes {
                header: 17,
                packed: 20,
                unpacked: 300,
                dictionary: 5
            }
        );
        assert!(PageSizes::read(&bytes[..9]).is_err());
    }

    #[test]
    fn endless_structures_end() {
        assert!(
            PageSizes::read(&[0x1c; 100_000][..]).is_err(),
            "nested structures"
        );
        assert!(
            PageSizes::read(&[0xff; 100][..]).is_err(),
            "a number without end"
        );
        // A list that claims 2⁶³ elements.
        let list = [
            0x19, 0xf3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3,
        ];
        assert!(PageSizes::read(&list[..]).is_err());
    }
}
