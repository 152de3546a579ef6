//! The container of a model file: named tensors of numbers and strings, on their way in and out.

use crate::error::{Error, Result};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors};
use std::collections::HashMap;

/// The key of the header in the container's metadata.
pub(super) const KEY: &str = "multikernel";

pub(crate) fn damaged(found: impl std::fmt::Display) -> Error {
    Error::input(
        "",
        format!("the model file is damaged: {found}"),
        "copy it again, or train again",
    )
}

/// Tensors on their way into a file.
#[derive(Default)]
pub(crate) struct Tensors {
    list: Vec<Tensor>,
}

struct Tensor {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensors {
    pub(super) fn push(&mut self, name: &str, dtype: Dtype, shape: &[usize], bytes: Vec<u8>) {
        self.list.push(Tensor {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            bytes,
        });
    }

    pub(crate) fn f64(&mut self, name: &str, shape: &[usize], values: &[f64]) {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.push(name, Dtype::F64, shape, bytes);
    }

    pub(crate) fn f32(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.push(name, Dtype::F32, shape, bytes);
    }

    pub(crate) fn u64(&mut self, name: &str, values: impl ExactSizeIterator<Item = usize>) {
        let shape = [values.len()];
        let bytes = values.flat_map(|v| (v as u64).to_le_bytes()).collect();
        self.push(name, Dtype::U64, &shape, bytes);
    }

    /// Column numbers, as their bytes.
    pub(crate) fn indices(&mut self, name: &str, bytes: Vec<u8>) {
        self.push(name, Dtype::U32, &[bytes.len() / 4], bytes);
    }

    /// Two tensors: where each string begins (and the last ends), and their bytes.
    pub(crate) fn strings<'a>(&mut self, name: &str, strings: impl Iterator<Item = &'a [u8]>) {
        let mut starts = vec![0];
        let mut bytes = Vec::new();
        for string in strings {
            bytes.extend_from_slice(string);
            starts.push(bytes.len());
        }
        self.u64(&format!("{name}.starts"), starts.into_iter());
        let shape = [bytes.len()];
        self.push(&format!("{name}.bytes"), Dtype::U8, &shape, bytes);
    }

    /// The bytes of a container with this header.
    pub(super) fn into_file(self, header: String) -> Result<Vec<u8>> {
        let views = self
            .list
            .iter()
            .map(|t| {
                let view = TensorView::new(t.dtype, t.shape.clone(), &t.bytes)?;
                Ok((t.name.as_str(), view))
            })
            .collect::<std::result::Result<Vec<_>, SafeTensorError>>()
            .map_err(|e| not_written(&e))?;
        let metadata = HashMap::from([(KEY.to_owned(), header)]);
        safetensors::serialize(views, Some(metadata)).map_err(|e| not_written(&e))
    }
}

pub(super) fn not_written(why: &dyn std::fmt::Display) -> Error {
    Error::input("model", format!("it cannot be written: {why}"), "")
}

/// Tensors of a file.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(super) tensors: SafeTensors<'a>,
}

impl Stored<'_> {
    pub(super) fn tensor(&self, name: &str, dtype: Dtype) -> Result<&[u8]> {
        let tensor = self
            .tensors
            .tensor(name)
            .map_err(|_| damaged(format!("there is no tensor '{name}'")))?;
        if tensor.dtype() != dtype {
            return Err(damaged(format!(
                "tensor '{name}' is of type {:?}, not {dtype:?}",
                tensor.dtype()
            )));
        }
        Ok(tensor.data())
    }

    fn numbers<T, const N: usize>(
        &self,
        name: &str,
        dtype: Dtype,
        number: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        let bytes = self.tensor(name, dtype)?;
        Ok(bytes.as_chunks().0.iter().map(|c| number(*c)).collect())
    }

    pub(crate) fn f64(&self, name: &str) -> Result<Vec<f64>> {
        self.numbers(name, Dtype::F64, f64::from_le_bytes)
    }

    pub(crate) fn indices(&self, name: &str) -> Result<Vec<u32>> {
        self.numbers(name, Dtype::U32, u32::from_le_bytes)
    }

    pub(crate) fn f32(&self, name: &str) -> Result<Vec<f32>> {
        self.numbers(name, Dtype::F32, f32::from_le_bytes)
    }

    pub(crate) fn u64(&self, name: &str) -> Result<Vec<usize>> {
        self.numbers(name, Dtype::U64, u64::from_le_bytes)?
            .into_iter()
            .map(|v| usize::try_from(v).map_err(|_| damaged(format!("tensor '{name}' holds {v}"))))
            .collect()
    }

    pub(crate) fn strings(&self, name: &str) -> Result<Vec<Vec<u8>>> {
        let starts = self.u64(&format!("{name}.starts"))?;
        let bytes = self.tensor(&format!("{name}.bytes"), Dtype::U8)?;
        starts
            .windows(2)
            .map(|w| {
                bytes
                    .get(w[0]..w[1])
                    .map(<[u8]>::to_vec)
                    .ok_or_else(|| damaged(format!("the starts of '{name}' do not fit its bytes")))
            })
            .collect()
    }
}
