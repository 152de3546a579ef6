//! The `.npz` format: a zip archive of `.npy` files, stored or deflated.

use super::npy::Header;
use super::source::{Input, Source};
use multikernel::error::{Error, Result, some_of};
use std::io::{BufReader, Read};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

/// Deflate cannot shrink data by more than this; a member that claims more lies about its size.
const BEST_DEFLATE: u64 = 1032;

/// An open archive.
pub(super) struct Archive<'s, 'a> {
    source: &'s Source<'a>,
    zip: ZipArchive<BufReader<Input<'a>>>,
    names: Vec<(String, usize)>,
}

/// One array of an archive.
pub(super) struct Member<R> {
    pub(super) header: Header,
    /// `file.npz:array`, for errors.
    pub(super) place: String,
    pub(super) input: R,
    /// Where the elements stand in the archive if they are stored as they are.
    pub(super) stored_at: Option<u64>,
}

impl<'s, 'a> Archive<'s, 'a> {
    pub(super) fn open(source: &'s Source<'a>) -> Result<Self> {
        let input = BufReader::with_capacity(1 << 16, source.open()?);
        let zip = ZipArchive::new(input).map_err(|e| damaged(source, &source.name, e))?;
        let mut names = Vec::new();
        for index in 0..zip.len() {
            let name = match zip.name_for_index(index) {
                Some(Ok(name)) => name.into_owned(),
                _ => {
                    return Err(Error::input(
                        &source.name,
                        format!("the name of its member {} is not text", index + 1),
                        "write the archive again with numpy.savez",
                    ));
                }
            };
            if let Some(array) = name.strip_suffix(".npy") {
                names.push((array.to_owned(), index));
            }
        }
        if names.is_empty() {
            return Err(Error::input(
                &source.name,
                "the archive holds no array",
                "write it with numpy.savez",
            ));
        }
        Ok(Archive { source, zip, names })
    }

    /// The names of all arrays, in the order of the archive.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The array of that name.
    pub(super) fn member(&mut self, name: &str) -> Result<Member<impl Read + use<'_, 'a>>> {
        let Some((_, index)) = self.names.iter().find(|(n, _)| n == name) else {
            return Err(Error::input(
                &self.source.name,
                format!("there is no array '{name}'"),
                format!(
                    "the archive holds {}",
                    some_of(self.names.iter().map(|(n, _)| n))
                ),
            ));
        };
        let place = format!("{}:{name}", self.source.name);
        let source = self.source;
        let member = self
            .zip
            .by_index(*index)
            .map_err(|e| damaged(source, &place, e))?;
        let (size, packed) = (member.size(), member.compressed_size());
        let possible = match member.compression() {
            CompressionMethod::Stored => packed,
            _ => packed.saturating_mul(BEST_DEFLATE).saturating_add(64),
        };
        if packed > source.length || size > possible {
            return Err(Error::input(
                place,
                format!(
                    "the archive claims {size} bytes made from {packed}, in a file of {}",
                    source.length
                ),
                "the file is truncated or damaged: copy or write it again",
            ));
        }
        let data_start = match member.compression() {
            CompressionMethod::Stored => member.data_start(),
            _ => None,
        };
        let mut input = Checked {
            inner: member,
            left: size,
        };
        let header = Header::read(&mut input, &place, size)?;
        Ok(Member {
            stored_at: data_start.map(|start| start + header.offset),
            header,
            place,
            input,
        })
    }
}

/// Lets no more bytes through than the archive has declared, so that a lying size cannot matter.
struct Checked<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let wanted = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buffer[..wanted])?;
        self.left -= read as u64;
        if self.left == 0 && wanted > 0 {
            // The checksum is compared at the end of the data, which only a further read reaches.
            self.inner.read(&mut [0])?;
        }
        Ok(read)
    }
}

fn damaged(source: &Source<'_>, place: &str, error: ZipError) -> Error {
    match error {
        ZipError::Io(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => source.failed(e),
        e => Error::input(
            place,
            format!("this is not a complete .npz archive ({e})"),
            "the file is truncated or damaged: copy or write it again",
        ),
    }
}
