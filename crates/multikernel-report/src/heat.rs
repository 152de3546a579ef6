//! Heat maps: tables of coloured fields, as SVG.

use super::draw::{WIDTH, open, words};
use super::text::{esc, short};

/// A field of a heat map.
pub(super) struct Cell {
    /// How strong its colour is, 0 to 1; none: it is empty.
    pub(super) strength: Option<f64>,
    /// Class of its colour.
    pub(super) class: &'static str,
    /// What stands in it, if there is room.
    pub(super) text: String,
    /// What is said of it.
    pub(super) tip: String,
    /// It is framed.
    pub(super) framed: bool,
}

/// A table of coloured fields.
pub(super) struct Heat<'a> {
    /// What it shows, for those who do not see it.
    pub(super) title: &'a str,
    pub(super) row_names: Vec<String>,
    pub(super) column_names: Vec<String>,
    /// What rows and columns are; rows may be empty.
    pub(super) rows: &'a str,
    pub(super) columns: &'a str,
    /// Row after row.
    pub(super) cells: Vec<Cell>,
}

/// Width of a field where there is room for it.
const LARGEST_CELL: f64 = 44.0;
/// Fields narrower than this hold no text.
const TEXT_CELL: f64 = 22.0;
/// Room above the fields, for the names of columns.
const TOP: f64 = 30.0;

/// Where the fields are.
struct Places {
    left: f64,
    width: f64,
    height: f64,
    columns: usize,
}

impl Places {
    /// Left and upper edge of field `k`.
    fn corner(&self, k: usize) -> (f64, f64) {
        let columns = self.columns.max(1);
        (
            self.left + (k % columns) as f64 * self.width,
            TOP + (k / columns) as f64 * self.height,
        )
    }
}

impl Heat<'_> {
    /// `room` for the names of rows; `letters` that fit there.
    pub(super) fn svg(&self, room: f64, letters: usize) -> String {
        let (rows, columns) = (self.row_names.len(), self.column_names.len());
        // Names that are long leave no room for what they are names of.
        let left = match self.rows.is_empty() {
            true => room,
            false => room + 14.0,
        };
        let width = ((WIDTH - left - 2.0) / columns.max(1) as f64).min(LARGEST_CELL);
        let places = Places {
            left,
            width,
            height: width.clamp(11.0, 30.0),
            columns,
        };
        let mut out = open(
            left + columns as f64 * width + 2.0,
            TOP + rows as f64 * places.height + 4.0,
            self.title,
            "heat",
        );
        out.push_str(&self.names(&places, letters));
        let cells = || self.cells.iter().enumerate().take(rows * columns);
        out.extend(cells().map(|(k, cell)| cell.svg(&places, k)));
        // Above all fields, which would cover them.
        let framed = cells().filter(|(_, cell)| cell.framed);
        out.extend(framed.map(|(k, _)| frame(&places, k)));
        out.push_str("</svg>");
        out
    }

    /// What stands above and left of the fields.
    fn names(&self, places: &Places, letters: usize) -> String {
        let &Places {
            left,
            width,
            height,
            ..
        } = places;
        let mut out = format!(
            "<text class=\"label\" x=\"{left:.1}\" y=\"9\">{} →</text>",
            esc(self.columns)
        );
        if !self.rows.is_empty() {
            out.push_str(&format!(
                "<text class=\"label\" transform=\"translate(9 {TOP:.1}) rotate(-90)\" text-anchor=\"end\">← {}</text>",
                esc(self.rows)
            ));
        }
        // Names that would run into each other are left out evenly.
        let longest = self.column_names.iter().map(|n| n.chars().count()).max();
        let every = ((longest.unwrap_or(1).min(8) as f64 * 5.5 + 4.0) / width)
            .ceil()
            .max(1.0);
        for (c, name) in self.column_names.iter().enumerate().step_by(every as usize) {
            let x = left + (c as f64 + 0.5) * width;
            out.push_str(&words("tick", x, TOP - 6.0, "middle", &short(name, 8)));
        }
        for (r, name) in self.row_names.iter().enumerate() {
            let y = TOP + (r as f64 + 0.5) * height + 3.5;
            out.push_str(&words("tick", left - 5.0, y, "end", &short(name, letters)));
        }
        out
    }
}

impl Cell {
    fn svg(&self, places: &Places, k: usize) -> String {
        let ((x, y), &Places { width, height, .. }) = (places.corner(k), places);
        let (class, strength) = match self.strength {
            Some(strength) if strength.is_finite() => (self.class, strength.clamp(0.0, 1.0)),
            _ => ("none", 0.0),
        };
        // From here on the other colour of letters is read better, in light and in dark.
        let strong = if strength > 0.66 { " strong" } else { "" };
        let mut out = format!(
            "<g class=\"cell tip {class}{strong}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill-opacity=\"{:.2}\"/>",
            x + 0.5,
            y + 0.5,
            (width - 1.0).max(0.5),
            (height - 1.0).max(0.5),
            0.06 + 0.94 * strength
        );
        if width >= TEXT_CELL && !self.text.is_empty() {
            out.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x + width / 2.0,
                y + height / 2.0 + 3.3,
                esc(&self.text)
            ));
        }
        out.push_str(&format!("<title>{}</title></g>", esc(&self.tip)));
        out
    }
}

fn frame(places: &Places, k: usize) -> String {
    let (x, y) = places.corner(k);
    format!(
        "<rect class=\"frame\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        x + 1.0,
        y + 1.0,
        (places.width - 2.0).max(1.0),
        (places.height - 2.0).max(1.0)
    )
}
