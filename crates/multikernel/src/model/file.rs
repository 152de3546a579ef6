//! The model file `.mk`: a safetensors container whose metadata holds a JSON header; docs/model-file.md describes it.
//!
//! A file is never trusted: sizes are checked against its real length before anything is allocated, and everything that
//! prediction relies on is checked by [`Parts::check`].

use super::match_views::TrainingView;
use super::tensors::{KEY, Stored, Tensors, damaged, not_written};
use super::{Model, Parts, Scheme};
use crate::data::{Csr, Dense, Scaling, Task, View, ViewData, Views};
use crate::error::{Error, Result};
use crate::files::replace_file;
use crate::gram::{Kernel, Normalizer, Repair};
use crate::loss::LossSpec;
use crate::measure::Calibration;
use crate::norm::NormSpec;
use safetensors::tensor::Dtype;
use safetensors::{SafeTensorError, SafeTensors};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

const FORMAT: &str = "multikernel model";
/// The newest version. It came with coefficients of every kernel by itself; a model without them is written as
/// [`JOINT_VERSION`], and one without joint problems and repaired kernels as [`PLAIN_VERSION`], so that older programs read it.
const VERSION: u64 = 3;
const JOINT_VERSION: u64 = 2;
const PLAIN_VERSION: u64 = 1;
/// The tensor with the state, as text, of a stream that the model is a snapshot of.
const STATE: &str = "online.state";
/// The tensor with the CRC-32 of the whole file, in which its own bytes count as zero.
const CHECKSUM: &str = "checksum";
/// The tensor of the coefficients of every kernel by itself.
const SEPARATE: &str = "kernel_coefficients";

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u64,
    task: Task,
    scheme: Scheme,
    classes: Vec<String>,
    loss: LossSpec,
    norm: NormSpec,
    c: f64,
    bias: bool,
    n_training: usize,
    training_views: Vec<TrainingView>,
    /// Their vectors stand in tensors.
    kernels: Vec<Kernel>,
    views: Vec<ViewHeader>,
    ids: bool,
    scaling: Scaling,
    /// There is a checksum; files from before it came have none.
    #[serde(default)]
    checksum: bool,
    /// Every kernel has coefficients of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    separate: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calibration: Option<Calibration>,
    training: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct ViewHeader {
    name: String,
    columns: Vec<String>,
    #[serde(flatten)]
    form: Form,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Form {
    Dense { width: usize },
    Sparse { width: usize },
    Strings,
}

/// What every version of the header says.
#[derive(Deserialize)]
struct Title {
    format: String,
    version: u64,
}

impl Model {
    /// Writes the model; an older file of that name is replaced only by a complete new one.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self
            .to_bytes()
            .map_err(|e| e.within(&path.display().to_string()))?;
        replace_file(path, &bytes)
    }

    /// Reads a model.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Model::from_bytes(&bytes).map_err(|e| e.within(&path.display().to_string()))
    }

    /// The model as the bytes of a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_bytes_with(Tensors::default(), None)
    }

    /// The model with tensors of the stream that it is a snapshot of, and what else is to be known of it.
    pub(crate) fn to_bytes_with(
        &self,
        mut tensors: Tensors,
        state: Option<String>,
    ) -> Result<Vec<u8>> {
        if let Some(state) = state {
            tensors.push(STATE, Dtype::U8, &[state.len()], state.into_bytes());
        }
        tensors.push(CHECKSUM, Dtype::U32, &[1], vec![0; 4]);
        let parts = &self.parts;
        let n = parts.columns.len();
        let outputs = parts.biases.len();
        tensors.f64("coefficients", &[n, outputs], &parts.coefficients);
        if let Some(separate) = &parts.separate {
            let shape = [parts.kernels.len(), n, outputs];
            tensors.f64(SEPARATE, &shape, separate);
        }
        let problems = parts.problems();
        tensors.f64("weights", &[problems, parts.kernels.len()], &parts.weights);
        tensors.f64("biases", &[outputs], &parts.biases);
        tensors.u64("samples", parts.columns.iter().copied());
        if let Some(ids) = &parts.ids {
            tensors.strings("ids", ids.iter().map(String::as_bytes));
        }
        let kernels = parts.kernels.iter().enumerate();
        let kernels = kernels
            .map(|(m, kernel)| write_kernel(&mut tensors, m, kernel, n))
            .collect();
        let views = parts
            .views
            .iter()
            .enumerate()
            .map(|(v, view)| ViewHeader {
                name: view.name.clone(),
                columns: view.columns.clone(),
                form: write_view(&mut tensors, &format!("view.{v}"), &view.data),
            })
            .collect();
        let header = Header {
            format: FORMAT.into(),
            version: parts.oldest_version(),
            task: parts.task,
            scheme: parts.scheme,
            classes: parts.classes.clone(),
            loss: parts.loss,
            norm: parts.norm.clone(),
            c: parts.c,
            bias: parts.bias,
            n_training: parts.n_training,
            training_views: parts.training_views.clone(),
            kernels,
            views,
            ids: parts.ids.is_some(),
            scaling: parts.scaling.clone(),
            checksum: true,
            separate: parts.separate.is_some(),
            calibration: parts.calibration,
            training: parts.training.clone(),
        };
        let header = serde_json::to_string(&header).map_err(|e| not_written(&e))?;
        let mut bytes = tensors.into_file(header)?;
        write_checksum(&mut bytes)?;
        Ok(bytes)
    }

    /// A model from the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
        Ok(Model::from_bytes_with(bytes)?.0)
    }

    /// A model, and the state of the stream that it is a snapshot of.
    pub(crate) fn from_bytes_with(bytes: &[u8]) -> Result<(Model, Option<(String, Stored<'_>)>)> {
        let header = read_header(bytes)?;
        let tensors =
            SafeTensors::deserialize(bytes).map_err(|e| damaged(format!("its tensors: {e}")))?;
        let file = Stored { tensors };
        let model = Model::new(file.parts(header)?)?;
        let state = file.tensor(STATE, Dtype::U8).ok();
        let state = state.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Ok((model, state.map(|state| (state, file))))
    }
}

/// The header of a file that is whole: its format, version and checksum are right.
fn read_header(bytes: &[u8]) -> Result<Header> {
    let foreign = || {
        Error::input(
            "",
            "this is not a model file of multikernel",
            "give a file that training wrote",
        )
    };
    check_ends(bytes)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| match e {
        SafeTensorError::MetadataIncompleteBuffer => damaged("it ends too early"),
        _ => foreign(),
    })?;
    let text = metadata
        .metadata()
        .as_ref()
        .and_then(|m| m.get(KEY))
        .ok_or_else(foreign)?;
    let title: Title = serde_json::from_str(text).map_err(|_| foreign())?;
    if title.format != FORMAT {
        return Err(foreign());
    }
    if !(PLAIN_VERSION..=VERSION).contains(&title.version) {
        return Err(Error::input(
            "",
            format!(
                "the file has version {} of the model format, this program reads versions {PLAIN_VERSION} to {VERSION}",
                title.version
            ),
            "take a program as new as the one that wrote it, or train again",
        ));
    }
    let sum = checksum(bytes)?;
    if let Some((place, sum)) = sum
        && bytes[place..place + 4] != sum.to_le_bytes()
    {
        return Err(damaged("its checksum is not that of its content"));
    }
    let header: Header =
        serde_json::from_str(text).map_err(|e| damaged(format!("its header says: {e}")))?;
    if header.checksum && sum.is_none() {
        return Err(damaged("its checksum is missing"));
    }
    Ok(header)
}

impl Parts {
    /// The oldest version that has what this model needs.
    fn oldest_version(&self) -> u64 {
        let is_repaired = || self.kernels.iter().any(|k| k.repair.is_some());
        match self.separate {
            Some(_) => VERSION,
            None if self.scheme == Scheme::Joint || is_repaired() => JOINT_VERSION,
            None => PLAIN_VERSION,
        }
    }
}

/// Writes the vectors of kernel m for n samples; what is left stands in the header.
fn write_kernel(tensors: &mut Tensors, m: usize, kernel: &Kernel, n: usize) -> Kernel {
    let mut left = kernel.clone();
    if let Normalizer::Spherical { factors: vector }
    | Normalizer::Center {
        row_means: vector, ..
    } = &mut left.normalizer
    {
        tensors.f64(&format!("kernel.{m}.normalizer"), &[n], vector);
        vector.clear();
    }
    if let Some(Repair::Clip(projection)) = &kernel.repair {
        let shape = [projection.directions(), n];
        tensors.f32(&clipped_name(m), &shape, projection.vectors());
    }
    left
}

/// Where the checksum stands, and what it should be; none in files from before there was one.
fn checksum(bytes: &[u8]) -> Result<Option<(usize, u32)>> {
    let tensors =
        SafeTensors::deserialize(bytes).map_err(|e| damaged(format!("its tensors: {e}")))?;
    let Ok(tensor) = tensors.tensor(CHECKSUM) else {
        return Ok(None);
    };
    if tensor.data().len() != 4 {
        return Err(damaged("its checksum is no number of 32 bits"));
    }
    let place = tensor.data().as_ptr() as usize - bytes.as_ptr() as usize;
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..place]);
    sum.update(&[0; 4]);
    sum.update(&bytes[place + 4..]);
    Ok(Some((place, sum.finalize())))
}

pub(crate) fn write_checksum(bytes: &mut [u8]) -> Result<()> {
    if let Some((place, sum)) = checksum(bytes)? {
        bytes[place..place + 4].copy_from_slice(&sum.to_le_bytes());
    }
    Ok(())
}

/// The tensor of the directions that are clipped off new samples for kernel m.
fn clipped_name(m: usize) -> String {
    format!("kernel.{m}.clipped")
}

/// Tensors must end inside of the file: the container's reader adds their ends up without looking for overflow.
fn check_ends(bytes: &[u8]) -> Result<()> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return Ok(());
    };
    let header = usize::try_from(u64::from_le_bytes(*length))
        .ok()
        .and_then(|length| rest.get(..length))
        .and_then(|text| serde_json::from_slice::<HashMap<String, serde_json::Value>>(text).ok());
    // What cannot be read here, the container's reader refuses with its own reason.
    let beyond = header.iter().flatten().any(|(_, entry)| {
        let ends = entry.get("data_offsets").and_then(|e| e.as_array());
        let long = |end: &serde_json::Value| end.as_u64().is_some_and(|e| e > bytes.len() as u64);
        ends.is_some_and(|ends| ends.iter().any(long))
    });
    match beyond {
        true => Err(damaged("it ends too early")),
        false => Ok(()),
    }
}

/// Writes a view under names that begin with `view`.
fn write_view(tensors: &mut Tensors, view: &str, data: &ViewData) -> Form {
    let name = |what: &str| format!("{view}.{what}");
    match data {
        ViewData::Dense(x) => {
            tensors.f32(&name("values"), &[x.rows(), x.cols()], x.values());
            Form::Dense { width: x.cols() }
        }
        ViewData::Sparse(x) => {
            let mut starts = vec![0];
            let (mut indices, mut values) = (Vec::new(), Vec::new());
            for i in 0..x.rows() {
                let (columns, row) = x.row(i);
                indices.extend(columns.iter().flat_map(|c| c.to_le_bytes()));
                values.extend_from_slice(row);
                starts.push(values.len());
            }
            tensors.u64(&name("starts"), starts.into_iter());
            tensors.push(&name("indices"), Dtype::U32, &[values.len()], indices);
            tensors.f32(&name("values"), &[values.len()], &values);
            Form::Sparse { width: x.cols() }
        }
        ViewData::Strings(x) => {
            tensors.strings(view, x.iter().map(Vec::as_slice));
            Form::Strings
        }
        // Models keep no given matrices; an empty one says so.
        ViewData::Pairwise(_) => Form::Dense { width: 0 },
    }
}

impl Stored<'_> {
    fn parts(&self, header: Header) -> Result<Parts> {
        let columns = self.u64("samples")?;
        let n = columns.len();
        let kernels = header
            .kernels
            .into_iter()
            .enumerate()
            .map(|(m, mut kernel)| {
                let name = format!("kernel.{m}.normalizer");
                match &mut kernel.normalizer {
                    Normalizer::Spherical { factors: vector }
                    | Normalizer::Center {
                        row_means: vector, ..
                    } => *vector = self.f64(&name)?,
                    Normalizer::None | Normalizer::Factor(_) => {}
                }
                kernel.repair = match kernel.repair {
                    Some(Repair::Clip(projection)) => {
                        let vectors = self.f32(&clipped_name(m))?;
                        Some(Repair::Clip(projection.with_vectors(vectors)))
                    }
                    other => other,
                };
                Ok(kernel)
            })
            .collect::<Result<_>>()?;
        let views = header
            .views
            .into_iter()
            .enumerate()
            .map(|(v, view)| {
                Ok(View {
                    data: self
                        .view(&format!("view.{v}"), &view.form, n)
                        .map_err(|e| e.within(&format!("view '{}'", view.name)))?,
                    name: view.name,
                    columns: view.columns,
                })
            })
            .collect::<Result<_>>()?;
        let ids = match header.ids {
            false => None,
            true => Some(
                self.strings("ids")?
                    .into_iter()
                    .map(String::from_utf8)
                    .collect::<std::result::Result<_, _>>()
                    .map_err(|_| damaged("an id is not text"))?,
            ),
        };
        Ok(Parts {
            task: header.task,
            scheme: header.scheme,
            classes: header.classes,
            loss: header.loss,
            norm: header.norm,
            c: header.c,
            bias: header.bias,
            biases: self.f64("biases")?,
            kernels,
            weights: self.f64("weights")?,
            columns,
            n_training: header.n_training,
            training_views: header.training_views,
            ids,
            coefficients: self.f64("coefficients")?,
            separate: match header.separate {
                true => Some(self.f64(SEPARATE)?),
                false => None,
            },
            views: Views::new(views)?,
            scaling: header.scaling,
            calibration: header.calibration,
            training: header.training,
        })
    }

    /// A view of n rows whose tensors' names begin with `view`.
    fn view(&self, view: &str, form: &Form, n: usize) -> Result<ViewData> {
        let name = |what: &str| format!("{view}.{what}");
        let data = match form {
            Form::Dense { width } => {
                ViewData::Dense(Dense::new(n, *width, self.f32(&name("values"))?)?)
            }
            Form::Sparse { width } => {
                let indices = self.indices(&name("indices"))?;
                let x = Csr::new(
                    *width,
                    self.u64(&name("starts"))?,
                    indices,
                    self.f32(&name("values"))?,
                )?;
                ViewData::Sparse(x)
            }
            Form::Strings => ViewData::Strings(self.strings(view)?),
        };
        if data.len() != n {
            return Err(damaged(format!(
                "it has {} rows for {n} samples",
                data.len()
            )));
        }
        Ok(data)
    }
}
