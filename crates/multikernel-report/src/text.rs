//! Words and numbers for people, safe inside of HTML.

/// Text as it may stand in HTML, between tags and inside of quoted attributes. What comes from a file goes through here.
pub(super) fn esc(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // Control characters, and those that turn the direction of all that follows.
            c if c.is_control()
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}

/// At most `length` characters of a text, escaped; what is cut off is replaced by an ellipsis in the middle, since names of kernels
/// differ at both ends.
pub(super) fn short(text: &str, length: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= length {
        return esc(text);
    }
    let head = length.saturating_sub(1).div_ceil(2);
    let tail = length.saturating_sub(1) - head;
    let head: String = letters[..head].iter().collect();
    let tail: String = letters[letters.len() - tail..].iter().collect();
    format!("{}…{}", esc(&head), esc(&tail))
}

/// A name, escaped, that is broken behind its slashes if it must be broken.
pub(super) fn name(text: &str) -> String {
    esc(text).replace('/', "/<wbr>")
}

/// A number with three or four digits that count.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let size = value.abs();
    let text = if size == 0.0 {
        "0".into()
    } else if !(1e-3..1e6).contains(&size) {
        return scientific(value);
    } else if size >= 1000.0 {
        return with_minus(&thousands(value));
    } else {
        let digits = match size {
            s if s >= 100.0 => 1,
            s if s >= 10.0 => 2,
            s if s >= 0.1 => 3,
            _ => 4,
        };
        format!("{value:.digits$}")
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    with_minus(text)
}

/// A number whose digits behind the point are those asked for.
pub(super) fn fixed(value: f64, digits: usize) -> String {
    match value.is_finite() {
        true => with_minus(&format!("{value:.digits$}")),
        false => "–".into(),
    }
}

/// A hyphen is too short for a minus.
fn with_minus(text: &str) -> String {
    text.replace('-', "−")
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", &digits[..]),
    };
    // 1234 is read easily; 12 345 is not without the gap.
    if digits.len() <= 4 {
        return format!("{sign}{digits}");
    }
    let mut out = String::from(sign);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

fn scientific(value: f64) -> String {
    let text = format!("{value:.1e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: String = power
        .chars()
        .filter_map(|c| match c {
            '-' => Some('⁻'),
            '0' => Some('⁰'),
            '1' => Some('¹'),
            '2' => Some('²'),
            '3' => Some('³'),
            c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)),
        })
        .collect();
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    with_minus(&match digits {
        "1" => format!("10{power}"),
        "-1" => format!("-10{power}"),
        digits => format!("{digits}·10{power}"),
    })
}

/// A whole number.
pub(super) fn count(value: u64) -> String {
    thousands(value as f64)
}

/// `3 kernels`, `1 kernel`.
pub(super) fn several(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n as u64), if n == 1 { one } else { many })
}

/// A share in percent, never rounded to 0 or 100 where it is not.
pub(super) fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if !value.is_finite() {
        return "–".into();
    }
    let size = value.abs();
    let text = match size {
        0.0 => "0".into(),
        s if s < 1e-3 => scientific(value),
        s if s < 0.01 => format!("{value:.4}"),
        s if s < 0.1 => format!("{value:.3}"),
        s if s < 1.0 => format!("{value:.2}"),
        s if (99.95..100.0).contains(&s) => format!("{value:.2}").replace("100.00", "99.99"),
        100.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    };
    format!("{}\u{a0}%", with_minus(&text))
}

/// A share in percent for columns of a table, where small ones need no digits.
pub(super) fn short_percent(share: f64) -> String {
    match share {
        1.0 => percent(1.0),
        s if s > 0.0 && s < 5e-4 => "<\u{a0}0.1\u{a0}%".replace('<', "&lt;"),
        s if s.is_finite() && s != 0.0 => format!("{}\u{a0}%", fixed(100.0 * s, 1)),
        s => percent(s),
    }
}

/// The level of an interval: 95 %, 99.5 %.
pub(super) fn level(share: f64) -> String {
    format!("{}\u{a0}%", number(100.0 * share))
}

/// Seconds.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s < 0.0 => "–".into(),
        s if s < 0.01 => format!("{:.1} ms", 1e3 * s),
        s if s < 10.0 => format!("{s:.2} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Bytes.
pub(super) fn bytes(n: u64) -> String {
    match n as f64 / f64::from(1 << 20) {
        mib if mib < 1024.0 => format!("{mib:.0} MiB"),
        mib => format!("{:.1} GiB", mib / 1024.0),
    }
}

/// A metric of a result object in words.
pub(super) fn metric(name: &str) -> String {
    let negated = name.strip_prefix('-');
    let known = match negated.unwrap_or(name) {
        "accuracy" => "accuracy",
        "balanced_accuracy" => "balanced accuracy",
        "mcc" => "Matthews correlation",
        "auc" => "area under the ROC curve",
        "r2" => "R²",
        "mae" => "mean absolute error",
        "rmse" => "root mean squared error",
        "accepted" => "share accepted",
        "log_loss" => "log loss",
        "calibration_error" => "calibration error",
        "online_error" => "share of mistakes along the stream",
        "mistakes" => "mistakes along the stream",
        other => return esc(&other.replace('_', " ")),
    };
    match negated {
        Some(_) => format!("{known} (negated)"),
        None => known.into(),
    }
}

/// A metric's value as people write it: shares in percent.
pub(super) fn metric_value(name: &str, value: f64) -> String {
    match name {
        "accuracy" | "balanced_accuracy" | "accepted" | "online_error" => percent(value),
        "mistakes" => number(value),
        "mcc" | "auc" | "r2" => fixed(value, 3),
        _ => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place() {
        assert_eq!(
            esc("<a href=\"x\" title='y'>&\u{0}\u{202e}"),
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;\u{fffd}\u{fffd}"
        );
        assert_eq!(short("abcdefghij", 5), "ab…ij");
        assert_eq!(short("<<<<<<<<<<", 3), "&lt;…&lt;");
        assert_eq!(short("<b>", 3), "&lt;b&gt;");
        assert_eq!(short("abc", 0), "…");
    }

    #[test]
    fn numbers_have_the_digits_that_count() {
        let shown: Vec<String> = [
            0.0,
            0.2651,
            1.0,
            58.1163,
            123.456,
            1234.5,
            123_456.7,
            -0.5,
            1.2e-5,
            2.5e8,
            f64::NAN,
        ]
        .map(number)
        .into();
        assert_eq!(
            shown,
            [
                "0",
                "0.265",
                "1",
                "58.12",
                "123.5",
                "1234",
                "123\u{202f}457",
                "−0.5",
                "1.2·10⁻⁵",
                "2.5·10⁸",
                "–"
            ]
        );
    }

    #[test]
    fn shares_are_never_rounded_to_none_or_all() {
        let shown: Vec<String> = [
            0.0,
            1.0,
            0.98887,
            0.99999,
            0.999_999_9,
            0.000_42,
            4.2e-6,
            1e-9,
            -0.1,
            f64::INFINITY,
        ]
        .map(percent)
        .into();
        let expected = [
            "0",
            "100",
            "98.9",
            "99.99",
            "99.99",
            "0.042",
            "4.2·10⁻⁴",
            "10⁻⁷",
            "−10.0",
        ];
        for (shown, expected) in shown.iter().zip(expected) {
            assert_eq!(*shown, format!("{expected}\u{a0}%"));
        }
        assert_eq!(shown[9], "–");
    }

    #[test]
    fn times_and_sizes() {
        let shown: Vec<String> = [0.0004, 0.4, 75.0, 600.0, 9000.0, f64::NAN]
            .map(duration)
            .into();
        assert_eq!(shown, ["0.4 ms", "0.40 s", "75 s", "10 min", "2.5 h", "–"]);
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(bytes(120 << 20), "120 MiB");
        assert_eq!(several(1, "kernel", "kernels"), "1 kernel");
        assert_eq!(
            several(12_345, "kernel", "kernels"),
            "12\u{202f}345 kernels"
        );
    }
}
