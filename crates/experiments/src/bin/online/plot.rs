//! Line charts as SVG, with nothing but text.

use multikernel::error::{Error, Result};
use std::fmt::Write as _;
use std::path::Path;

/// One line of a chart.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A chart with a logarithmic x axis.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) lines: Vec<Line>,
}

const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#8c564b",
];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 48.0;

impl Chart<'_> {
    /// Writes the chart.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        std::fs::write(file, self.svg()).map_err(|e| Error::io(file, e))
    }

    fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|l| &l.points);
        let range = |of: fn(&(f64, f64)) -> f64| {
            let all = points().map(of);
            all.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| {
                (a.min(v), b.max(v))
            })
        };
        let ((x0, x1), (_, y1)) = (range(|p| p.0), range(|p| p.1));
        let top = nice(y1);
        let px = |x: f64| LEFT + (x / x0).ln() / (x1 / x0).ln() * (WIDTH - LEFT - RIGHT);
        let py = |y: f64| HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let text = |out: &mut String, x: f64, y: f64, anchor: &str, text: &str| {
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
            );
        };
        text(&mut out, LEFT, 20.0, "start", self.title);
        for k in 0..=5 {
            let y = top * f64::from(k) / 5.0;
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {:.1}H{:.1}\" stroke=\"#ddd\"/>",
                py(y),
                WIDTH - RIGHT
            );
            text(&mut out, LEFT - 6.0, py(y) + 4.0, "end", &format!("{y:.2}"));
        }
        for exponent in 0..8 {
            for digit in [1.0, 2.0, 5.0] {
                let x = digit * 10f64.powi(exponent);
                if x >= x0 * 0.999 && x <= x1 * 1.001 {
                    let _ = writeln!(
                        out,
                        "<path d=\"M{:.1} {:.1}v5\" stroke=\"#555\"/>",
                        px(x),
                        HEIGHT - BOTTOM
                    );
                    text(
                        &mut out,
                        px(x),
                        HEIGHT - BOTTOM + 18.0,
                        "middle",
                        &x.to_string(),
                    );
                }
            }
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        text(&mut out, middle, HEIGHT - 10.0, "middle", self.x);
        let _ = writeln!(
            out,
            "<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (TOP + HEIGHT - BOTTOM) / 2.0,
            self.y
        );
        for (k, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[k % COLOURS.len()];
            let path: Vec<String> = line
                .points
                .iter()
                .map(|p| format!("{:.1} {:.1}", px(p.0), py(p.1)))
                .collect();
            let _ = writeln!(
                out,
                "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>",
                path.join("L")
            );
            let y = TOP + 8.0 + 18.0 * k as f64;
            let x = WIDTH - RIGHT + 10.0;
            let _ = writeln!(
                out,
                "<path d=\"M{x} {:.1}h18\" stroke=\"{colour}\" stroke-width=\"3\"/>",
                y - 4.0
            );
            text(&mut out, x + 24.0, y, "start", &line.name);
        }
        out.push_str("</svg>\n");
        out
    }
}

/// A round number not below y.
fn nice(y: f64) -> f64 {
    let unit = 10f64.powf(y.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps
        .iter()
        .map(|s| s * unit)
        .find(|s| *s >= y)
        .unwrap_or(10.0 * unit)
}
