//! Numbers as people read them: `-h` levels 0 to 3.
//!
//! Wire: protocol/doc/22-output.md#9-numbers

/// How numbers are written: `--no-h`, the default, `-h`, `-hh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Human {
    /// Digits only.
    Plain,
    /// Groups of three, separated by commas.
    #[default]
    Grouped,
    /// Units of 1000.
    Decimal,
    /// Units of 1024.
    Binary,
}

impl Human {
    /// Returns the style after `count` uses of `-h` on top of the default.
    pub fn after(count: u32) -> Human {
        match count {
            0 => Human::Grouped,
            1 => Human::Decimal,
            _ => Human::Binary,
        }
    }

    /// Formats a count of bytes.
    pub fn bytes(self, n: u64) -> String {
        match self.units(n as f64) {
            Some(text) => text,
            None if self == Human::Plain => n.to_string(),
            None => grouped(n),
        }
    }

    /// Formats a count of items: separators, never units.
    pub fn count(self, n: u64) -> String {
        if self == Human::Plain {
            n.to_string()
        } else {
            grouped(n)
        }
    }

    /// Formats a decimal that may get a unit, such as a rate.
    pub fn decimal(self, value: f64, places: usize) -> String {
        self.units(value).unwrap_or_else(|| self.min(Human::Grouped).fixed(value, places))
    }

    /// Formats a decimal that never gets a unit, such as seconds or the speedup.
    pub fn fixed(self, value: f64, places: usize) -> String {
        if value < 1000.0 || self == Human::Plain {
            return format!("{value:.places$}");
        }
        let text = format!("{value:.places$}");
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole = whole.parse().map(grouped).unwrap_or_else(|_| whole.to_owned());
        if fraction.is_empty() {
            whole
        } else {
            format!("{whole}.{fraction}")
        }
    }

    fn units(self, value: f64) -> Option<String> {
        let step = match self {
            Human::Decimal => 1000.0,
            Human::Binary => 1024.0,
            Human::Plain | Human::Grouped => return None,
        };
        if value < step {
            return None;
        }
        let mut value = value;
        for unit in ["", "K", "M", "G", "T", "P"] {
            if value < step || unit == "P" {
                return Some(format!("{value:.2}{unit}"));
            }
            value /= step;
        }
        None
    }
}

/// Formats with a comma between groups of three digits.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_the_level() {
        let n = 3_048_903;
        assert_eq!(Human::Plain.bytes(n), "3048903");
        assert_eq!(Human::Grouped.bytes(n), "3,048,903");
        assert_eq!(Human::Decimal.bytes(n), "3.05M");
        assert_eq!(Human::Binary.bytes(n), "2.91M");
        assert_eq!(Human::Binary.bytes(1023), "1,023");
        assert_eq!(Human::Decimal.bytes(999), "999");
    }

    #[test]
    fn decimals_keep_their_places() {
        assert_eq!(Human::Grouped.decimal(96440.0, 2), "96,440.00");
        assert_eq!(Human::Grouped.fixed(0.99, 2), "0.99");
        assert_eq!(Human::Plain.decimal(96440.0, 2), "96440.00");
        assert_eq!(Human::Decimal.decimal(96440.0, 2), "96.44K");
        assert_eq!(Human::Decimal.fixed(1234.5, 2), "1,234.50");
    }
}
