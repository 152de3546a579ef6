//! Pictures as SVG. Drawn 360 units wide, so that letters have their size on a phone and grow on wider screens; colours are
//! classes of the style sheet, so that they follow light, dark and print.

use super::text::{esc, number};

/// Width of every picture.
pub(super) const WIDTH: f64 = 360.0;
/// Room for what stands left of, right of, above and below the area that is drawn in.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 36.0;
const HEIGHT: f64 = 220.0;

/// Where numbers stand on a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    /// Only whole numbers are marked.
    whole: bool,
    /// Ends of the line in the picture.
    from: f64,
    to: f64,
}

impl Scale {
    /// From the smallest to the largest of the numbers that are finite, with a little room; none if there are none.
    pub(super) fn around(values: impl Iterator<Item = f64>) -> Option<Scale> {
        let (low, high) = ends(values)?;
        let room = match high > low {
            true => 0.05 * (high - low),
            false => 0.5 * low.abs().max(1.0),
        };
        Some(Scale::new(low - room, high + room, false))
    }

    /// Ends as they are.
    pub(super) fn between(low: f64, high: f64) -> Scale {
        Scale::new(low, if high > low { high } else { low + 1.0 }, false)
    }

    /// From 1 to `last`, marked at whole numbers.
    pub(super) fn rounds(last: usize) -> Scale {
        Scale {
            whole: true,
            ..Scale::between(1.0, last as f64)
        }
    }

    /// Whole powers of ten around the numbers that are positive.
    pub(super) fn powers(values: impl Iterator<Item = f64>) -> Option<Scale> {
        let logs = values.filter(|v| *v > 0.0).map(|v| v.log10());
        let (low, high) = ends(logs)?;
        let (low, high) = (low.floor(), high.ceil());
        Some(Scale::new(
            low,
            if high > low { high } else { low + 1.0 },
            true,
        ))
    }

    fn new(low: f64, high: f64, log: bool) -> Scale {
        Scale {
            low,
            high,
            log,
            whole: log,
            from: 0.0,
            to: 1.0,
        }
    }

    fn on(self, from: f64, to: f64) -> Scale {
        Scale { from, to, ..self }
    }

    /// Place of a number; those beyond the ends stand at the ends.
    fn at(&self, value: f64) -> f64 {
        let value = match self.log {
            true => value.max(f64::MIN_POSITIVE).log10(),
            false => value,
        };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        let share = if share.is_nan() { 0.0 } else { share };
        self.from + share * (self.to - self.from)
    }

    /// At most about `count` round numbers inside, and how they are written.
    fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let span = self.high - self.low;
        if !(span > 0.0 && span.is_finite()) {
            return Vec::new();
        }
        let rough = span / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let mut step = [1.0, 2.0, 5.0, 10.0]
            .map(|m| m * power)
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power);
        if self.whole {
            step = step.max(1.0).round();
        }
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        // Numbers so large that the step drowns in them have no ticks.
        if last.saturating_sub(first) > 20 {
            return Vec::new();
        }
        (first..=last)
            .map(|k| {
                let value = k as f64 * step;
                match self.log {
                    true => {
                        let value = 10f64.powf(value);
                        (value, number(value))
                    }
                    false => (value, number(value)),
                }
            })
            .collect()
    }
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|v| v.is_finite() && v.abs() < 1e300);
    finite.fold(None, |ends, v| match ends {
        None => Some((v, v)),
        Some((low, high)) => Some((v.min(low), v.max(high))),
    })
}

/// A line of a chart.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Class of its colour and dashes.
    pub(super) class: String,
}

/// A point of a chart.
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) radius: f64,
    /// Class of its colour.
    pub(super) class: String,
    /// What is said of it.
    pub(super) tip: String,
}

/// A chart with two axes.
pub(super) struct Chart<'a> {
    /// What it shows, for those who do not see it.
    pub(super) title: &'a str,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) x_name: &'a str,
    pub(super) y_name: &'a str,
    pub(super) lines: Vec<Line>,
    pub(super) dots: Vec<Dot>,
}

impl Chart<'_> {
    pub(super) fn svg(&self) -> String {
        let x = self.x.on(LEFT, WIDTH - RIGHT);
        let y = self.y.on(HEIGHT - BOTTOM, TOP);
        let mut out = open(WIDTH, HEIGHT, self.title, "chart");
        for (value, text) in y.ticks(4) {
            let at = y.at(value);
            out.push_str(&format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>{}",
                WIDTH - RIGHT,
                words("tick", LEFT - 5.0, at + 3.5, "end", &text)
            ));
        }
        let bottom = HEIGHT - BOTTOM;
        for (value, text) in x.ticks(5) {
            let at = x.at(value);
            out.push_str(&format!(
                "<line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>{}",
                bottom + 4.0,
                words("tick", at, bottom + 15.0, "middle", &text)
            ));
        }
        out.push_str(&format!(
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{bottom}\" y2=\"{bottom}\"/>{}<text class=\"label\" transform=\"translate(9 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            WIDTH - RIGHT,
            words("label", WIDTH - RIGHT, HEIGHT - 4.0, "end", &esc(self.x_name)),
            (TOP + bottom) / 2.0,
            esc(self.y_name)
        ));
        for line in &self.lines {
            out.push_str(&self.line(line, &x, &y));
        }
        for dot in &self.dots {
            if !(dot.x.is_finite() && dot.y.is_finite()) {
                continue;
            }
            out.push_str(&format!(
                "<circle class=\"dot tip {}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\"><title>{}</title></circle>",
                dot.class,
                x.at(dot.x),
                y.at(dot.y),
                dot.radius,
                esc(&dot.tip)
            ));
        }
        out.push_str("</svg>");
        out
    }

    fn line(&self, line: &Line, x: &Scale, y: &Scale) -> String {
        let shown = |v: f64, scale: &Scale| v.is_finite() && (!scale.log || v > 0.0);
        let mut path = String::new();
        let mut pen_is_down = false;
        let mut points = 0;
        for &(a, b) in &line.points {
            if !shown(a, x) || !shown(b, y) {
                pen_is_down = false;
                continue;
            }
            let letter = if pen_is_down { 'L' } else { 'M' };
            path.push_str(&format!("{letter}{:.1} {:.1}", x.at(a), y.at(b)));
            pen_is_down = true;
            points += 1;
        }
        let mut out = format!(
            "<path class=\"line tip {}\" d=\"{path}\"><title>{}</title></path>",
            line.class,
            esc(&line.name)
        );
        // Few points are seen better as such.
        if points <= 30 {
            for &(a, b) in line
                .points
                .iter()
                .filter(|p| shown(p.0, x) && shown(p.1, y))
            {
                out.push_str(&format!(
                    "<circle class=\"dot tip {}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\"><title>{}: {}</title></circle>",
                    line.class,
                    x.at(a),
                    y.at(b),
                    esc(&line.name),
                    number(b)
                ));
            }
        }
        out
    }
}

/// A value with its interval as a bar in percent of the room it gets, for a line of a table.
pub(super) fn bar(value: f64, interval: Option<(f64, f64)>, full: f64, class: &str) -> String {
    let part = |v: f64| match full > 0.0 && v.is_finite() {
        true => (100.0 * v / full).clamp(0.0, 100.0),
        false => 0.0,
    };
    let mut out = format!(
        "<svg class=\"bar\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"{:.2}%\" height=\"100%\" rx=\"2\"/>",
        part(value)
    );
    if let Some((low, high)) = interval {
        let (low, high) = (part(low), part(high));
        out.push_str(&format!(
            "<line class=\"whisker\" x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"50%\" y2=\"50%\"/><line class=\"whisker\" x1=\"{low:.2}%\" x2=\"{low:.2}%\" y1=\"22%\" y2=\"78%\"/><line class=\"whisker\" x1=\"{high:.2}%\" x2=\"{high:.2}%\" y1=\"22%\" y2=\"78%\"/>",
        ));
    }
    out.push_str("</svg>");
    out
}

/// Values with intervals on one axis, one line each: name, value in words, value, interval.
pub(super) struct Strip {
    pub(super) name: String,
    pub(super) words: String,
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) class: &'static str,
}

/// Strips below each other. Their axis does not begin at 0, which its numbers say.
pub(super) fn strips(title: &str, strips: &[Strip], written: impl Fn(f64) -> String) -> String {
    let values = strips.iter().flat_map(|s| {
        let (low, high) = s.interval.unwrap_or((s.value, s.value));
        [s.value, low, high]
    });
    let Some(scale) = Scale::around(values) else {
        return String::new();
    };
    let line = 40.0;
    let height = line * strips.len() as f64 + 24.0;
    let x = scale.on(10.0, WIDTH - 10.0);
    let bottom = height - 20.0;
    let mut out = open(WIDTH, height, title, "chart");
    for (value, _) in x.ticks(4) {
        let at = x.at(value);
        out.push_str(&format!(
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"4\" y2=\"{bottom:.1}\"/>{}",
            words("tick", at, height - 6.0, "middle", &esc(&written(value)))
        ));
    }
    for (k, strip) in strips.iter().enumerate() {
        let y = line * k as f64 + 30.0;
        out.push_str(&format!(
            "<text class=\"name\" x=\"2\" y=\"{:.1}\">{}</text>{}<line class=\"grid\" x1=\"2\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            y - 12.0,
            super::text::short(&strip.name, 44),
            words("value", WIDTH - 2.0, y - 12.0, "end", &esc(&strip.words)),
            WIDTH - 2.0
        ));
        if let Some((low, high)) = strip.interval {
            out.push_str(&format!(
                "<line class=\"range {}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                strip.class,
                x.at(low),
                x.at(high)
            ));
        }
        out.push_str(&format!(
            "<circle class=\"dot tip {}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{}: {}</title></circle>",
            strip.class,
            x.at(strip.value),
            esc(&strip.name),
            esc(&strip.words)
        ));
    }
    out.push_str("</svg>");
    out
}

/// Words of a class with their end, middle or start at a place; `text` is escaped already.
pub(super) fn words(class: &str, x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    )
}

pub(super) fn open(width: f64, height: f64, title: &str, class: &str) -> String {
    format!(
        "<svg class=\"{class}\" role=\"img\" viewBox=\"0 0 {width:.1} {height:.1}\" aria-label=\"{}\">",
        esc(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let texts = |scale: Scale| -> Vec<String> {
            scale.ticks(4).into_iter().map(|tick| tick.1).collect()
        };
        assert_eq!(texts(Scale::between(0.0, 1.0)), ["0", "0.5", "1"]);
        assert_eq!(texts(Scale::between(-3.0, 7.0)), ["0", "5"]);
        let powers = Scale::powers([1e-5, 0.3].into_iter()).unwrap();
        assert_eq!(texts(powers), ["10⁻⁴", "0.01", "1"]);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(Scale::around([f64::NAN, f64::INFINITY].into_iter()).is_none());
        assert!(Scale::powers([0.0, -1.0].into_iter()).is_none());
        assert_eq!(strips("", &[], number), "");
    }

    #[test]
    fn strange_numbers_stay_in_the_picture() {
        let values = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            1e308,
            -1e308,
            1e-320,
            5.0,
        ];
        for a in values {
            for b in values {
                for scale in [
                    Scale::around([a, b].into_iter()),
                    Scale::powers([a, b].into_iter()),
                    Some(Scale::between(a, b)),
                ]
                .into_iter()
                .flatten()
                {
                    let chart = Chart {
                        title: "",
                        x: scale,
                        y: scale,
                        x_name: "x",
                        y_name: "y",
                        lines: vec![Line {
                            name: String::new(),
                            points: vec![(a, b), (b, a), (1.0, 1.0)],
                            class: String::new(),
                        }],
                        dots: vec![Dot {
                            x: a,
                            y: b,
                            radius: 2.0,
                            class: String::new(),
                            tip: String::new(),
                        }],
                    };
                    let svg = chart.svg();
                    assert!(
                        !svg.contains("NaN") && !svg.contains("inf"),
                        "{a} {b}: {svg}"
                    );
                }
            }
        }
    }
}
