//! Samples described by named views, and what is to be learned about them.
//!
//! [`load`] turns files into a [`Dataset`]: [`Views`] with, if there are any, [`Labels`]. [`infer_task`] and
//! [`Targets`] make of the labels what a solver needs, [`Scaling`] changes features by statistics of the training
//! data, [`ArrayWriter`] writes arrays that [`load`] and NumPy read.

mod contents;
mod copies;
mod csv;
mod digits;
mod fasta;
mod given;
mod join;
mod label_file;
mod labels;
mod libsvm;
mod load;
mod matrix;
mod npy;
mod npy_header;
mod npz;
mod pairwise;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_bytes;
#[cfg(feature = "parquet")]
mod parquet_pages;
mod scaling;
mod source;
mod split;
mod stream;
mod table;
mod views;
mod whole_file;
mod write;

pub use contents::holds_given_matrices;
pub use copies::{Merged, merge_copies};
pub use digits::digits;
pub use labels::{LabelKind, Labels, Targets, Task, infer_task};
pub use load::{Dataset, LoadOptions, Purpose, load, load_from, load_labels, load_numbers};
pub use matrix::{Csr, Dense};
pub use pairwise::Pairwise;
pub use scaling::{ScaleKind, ScaleOption, Scaling};
pub use split::Split;
pub use stream::{
    LineReader, StreamEvent, StreamExample, StreamFormat, StreamLine, StreamOptions, StreamParser,
    StreamRow,
};
pub use table::{ColumnPick, ViewCut};
pub use views::{View, ViewData, Views, ViewsIter};
pub(crate) use whole_file::replace_file;
pub use whole_file::{WholeFile, check_writable};
pub use write::{ArraySink, ArrayWriter};
