//! The bytes of a Parquet file, for its decoder.

use super::source::Source;
use bytes::Bytes;
use multikernel::error::{Error, Result};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Take};

/// The bytes of the file; a range outside of it is refused before memory is taken for it.
pub(super) struct Chunks {
    from: From,
    pub(super) length: u64,
}

enum From {
    File(File),
    Memory(Bytes),
}

impl Chunks {
    fn check(&self, start: u64, length: u64) -> ParquetResult<()> {
        match start.checked_add(length) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(ParquetError::EOF(format!(
                "bytes {start} to {} of {}",
                start.saturating_add(length),
                self.length
            ))),
        }
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.length
    }
}

/// A part of the file, from wherever it comes.
pub(super) enum Piece {
    File(BufReader<Take<File>>),
    Memory(std::io::Cursor<Bytes>),
}

impl Read for Piece {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Piece::File(file) => file.read(buffer),
            Piece::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl ChunkReader for Chunks {
    type T = Piece;

    fn get_read(&self, start: u64) -> ParquetResult<Piece> {
        self.check(start, 0)?;
        Ok(match &self.from {
            From::File(file) => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(start))?;
                Piece::File(BufReader::new(file.take(self.length - start)))
            }
            From::Memory(bytes) => {
                Piece::Memory(std::io::Cursor::new(bytes.slice(start as usize..)))
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.check(start, length as u64)?;
        match &self.from {
            From::File(file) => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(start))?;
                let mut bytes = vec![0; length];
                file.read_exact(&mut bytes)?;
                Ok(bytes.into())
            }
            From::Memory(bytes) => Ok(bytes.slice(start as usize..start as usize + length)),
        }
    }
}

/// Opens the file.
pub(super) fn chunks(source: &Source<'_>) -> Result<Chunks> {
    let from = match source.bytes {
        Some(bytes) => From::Memory(Bytes::copy_from_slice(bytes)),
        None => From::File(File::open(&source.name).map_err(|e| Error::io(&source.name, e))?),
    };
    Ok(Chunks {
        from,
        length: source.length,
    })
}
