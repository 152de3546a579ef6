//! Readers and writers of data for [`multikernel`]: files become views with labels, streams become examples,
//! matrices become files.
//!
//! [`load`] turns files into a [`Dataset`](multikernel::data::Dataset), [`StreamParser`] lines into examples, and
//! [`ArrayWriter`] writes arrays that [`load`] and NumPy read. A format is one file here and one line in `Format`.
#![deny(missing_docs)]

mod budget;
mod csv;
mod fasta;
mod gram_files;
mod gram_layout;
mod join;
mod label_file;
mod libsvm;
mod load;
mod npy;
mod npy_header;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_bytes;
#[cfg(feature = "parquet")]
mod parquet_pages;
mod sniff;
mod source;
mod stream;
mod table;
mod write;

pub use load::{LoadOptions, Purpose, load, load_from, load_labels, load_numbers};
pub use sniff::holds_given_matrices;
pub use stream::{
    LineReader, StreamEvent, StreamExample, StreamFormat, StreamLine, StreamOptions, StreamParser,
    StreamRow,
};
pub use table::{ColumnPick, ViewCut};
pub use write::{ArraySink, ArrayWriter};
