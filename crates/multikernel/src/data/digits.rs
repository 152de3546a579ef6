//! The data set inside the library: 1797 handwritten digits, cut into four quadrants.

use super::{Dataset, Dense, Labels, View, ViewData, Views};
use crate::error::{Error, Result};
use flate2::read::ZlibDecoder;
use std::io::Read;

const SAMPLES: usize = 1797;
const SIDE: usize = 8;
const HALF: usize = SIDE / 2;
/// Pixels, then labels, a byte each; see the README beside the file.
const PACKED: &[u8] = include_bytes!("../../data/digits.zlib");

/// The 1797 digits of 8×8 pixels (0…16) that scikit-learn ships, with labels 0…9, as four views of 4×4 pixels:
/// `upper_left`, `upper_right`, `lower_left`, `lower_right`.
pub fn digits() -> Result<Dataset> {
    let mut raw = Vec::with_capacity(SAMPLES * (SIDE * SIDE + 1));
    ZlibDecoder::new(PACKED)
        .read_to_end(&mut raw)
        .map_err(|e| Error::io("digits", e))?;
    let (pixels, labels) = raw.split_at(SAMPLES * SIDE * SIDE);
    let quadrant = |name: &str, top: usize, left: usize| {
        let mut values = Vec::with_capacity(SAMPLES * HALF * HALF);
        let mut columns = Vec::with_capacity(HALF * HALF);
        for image in pixels.chunks_exact(SIDE * SIDE) {
            for row in image.chunks_exact(SIDE).skip(top).take(HALF) {
                values.extend(row[left..left + HALF].iter().map(|&v| f32::from(v)));
            }
        }
        for row in top..top + HALF {
            columns.extend((left..left + HALF).map(|column| format!("pixel_{row}_{column}")));
        }
        Ok(View {
            name: name.to_owned(),
            columns,
            data: ViewData::Dense(Dense::new(SAMPLES, HALF * HALF, values)?),
        })
    };
    let views = Views::new(vec![
        quadrant("upper_left", 0, 0)?,
        quadrant("upper_right", 0, HALF)?,
        quadrant("lower_left", HALF, 0)?,
        quadrant("lower_right", HALF, HALF)?,
    ])?;
    Ok(Dataset {
        views,
        labels: Some(Labels::from_numbers(labels.iter().map(|&l| f64::from(l)))?),
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Targets, Task, infer_task};

    #[test]
    fn the_digits_are_those_of_scikit_learn() {
        let data = digits().unwrap();
        let labels = data.labels.unwrap();
        assert_eq!(data.views.len(), 1797);
        assert_eq!(labels.len(), 1797);
        assert_eq!(infer_task(Some(&labels)).0, Task::Classify);
        let targets = Targets::new(Some(&labels), Task::Classify, 1797).unwrap();
        let counts: Vec<usize> = targets.class_counts().into_iter().map(|c| c.1).collect();
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let sum: f64 = data
            .views
            .iter()
            .map(|v| match &v.data {
                ViewData::Dense(x) => x.values().iter().map(|&p| f64::from(p)).sum::<f64>(),
                _ => panic!("dense expected"),
            })
            .sum();
        assert_eq!(sum, 561_718.0);
        let ViewData::Dense(x) = &data.views.get("upper_right").unwrap().data else {
            panic!("dense expected");
        };
        // First image, first row: 0 0 5 13 | 9 1 0 0.
        assert_eq!(x.row(0)[..4], [9.0, 1.0, 0.0, 0.0]);
        assert_eq!(
            data.views.get("upper_right").unwrap().columns[4],
            "pixel_1_4"
        );
    }
}
