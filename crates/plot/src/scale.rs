//! Maps values to pixels, and chooses the round values for the ticks.

/// An axis with its ends in values and in pixels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    log: bool,
    /// Ends in values, and their places in pixels.
    ends: (f64, f64),
    pixels: (f64, f64),
}

impl Scale {
    /// An axis that shows all `values`, or exactly `range` if that is given. With `from_zero`, a
    /// linear axis begins at zero unless the data would then take less than half of it.
    pub(crate) fn new(
        log: bool,
        range: Option<(f64, f64)>,
        values: impl Iterator<Item = f64>,
        from_zero: bool,
    ) -> Self {
        // Beyond these limits, the ends of an axis with their margins, or the difference of the
        // ends, would overflow.
        let least = if log { 1e-280 } else { -1e280 };
        let usable = |value: &f64| (least..=1e280).contains(value);
        let given = range.filter(|(low, high)| usable(low) && usable(high) && low < high);
        let (low, high) = given.unwrap_or_else(|| {
            let start = (f64::INFINITY, f64::NEG_INFINITY);
            let grow = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
            let (low, high) = values.filter(usable).fold(start, grow);
            widen(log, low, high, from_zero)
        });
        Scale { log, ends: (low, high), pixels: (0.0, 1.0) }
    }

    /// Returns the axis with its ends at these pixels.
    pub(crate) fn over(self, from: f64, to: f64) -> Self {
        Scale { pixels: (from, to), ..self }
    }

    /// The pixel of `value`, at most 50 axis lengths outside; `None` if the value cannot be shown.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let share = if self.log {
            let (low, high) = (libm::log10(self.ends.0), libm::log10(self.ends.1));
            (libm::log10(value) - low) / (high - low)
        } else {
            (value - self.ends.0) / (self.ends.1 - self.ends.0)
        };
        // Some renderers fail with very large coordinates.
        let place = self.pixels.0 + share.clamp(-50.0, 50.0) * (self.pixels.1 - self.pixels.0);
        (value.is_finite() && place.is_finite()).then_some(place)
    }

    /// The ends of the axis, in values.
    pub(crate) fn ends(&self) -> (f64, f64) {
        self.ends
    }

    /// About `count` values for ticks with a number.
    pub(crate) fn ticks(&self, count: usize) -> Vec<f64> {
        if self.log { self.log_ticks(count) } else { self.linear_ticks(count) }
    }

    /// The ticks as text. On a linear axis all have the same number of decimals.
    pub(crate) fn labels(&self, ticks: &[f64]) -> Vec<String> {
        labels(self.log, ticks)
    }

    /// Values for ticks without a number, between those with one.
    pub(crate) fn minor_ticks(&self) -> Vec<f64> {
        let (first, last) = self.decades();
        if !self.log || last - first > 8 {
            return Vec::new();
        }
        let parts = |decade| (2..10).map(move |part| f64::from(part) * power(decade));
        (first..=last).flat_map(parts).filter(|value| self.shows(*value)).collect()
    }

    fn shows(&self, value: f64) -> bool {
        let slack = if self.log { value * 1e-9 } else { (self.ends.1 - self.ends.0) * 1e-9 };
        (self.ends.0 - slack..=self.ends.1 + slack).contains(&value)
    }

    /// Powers of ten that enclose the axis.
    fn decades(&self) -> (i32, i32) {
        (libm::floor(libm::log10(self.ends.0)) as i32, libm::ceil(libm::log10(self.ends.1)) as i32)
    }

    fn linear_ticks(&self, count: usize) -> Vec<f64> {
        let (low, high) = self.ends;
        let step = round_step((high - low) / count.max(1) as f64);
        let (first, last) = (libm::ceil(low / step - 1e-9), libm::floor(high / step + 1e-9));
        // Ticks are multiples of the step, not sums, so that rounding errors do not add up.
        let tick = |index: usize| (first + index as f64) * step;
        (0..=(last - first).max(0.0) as usize).map(tick).map(|tick| tick + 0.0).collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<f64> {
        let (first, last) = self.decades();
        let every = |parts: &'static [f64], stride: usize| -> Vec<f64> {
            let values = |decade| parts.iter().map(move |part| part * power(decade));
            (first..=last).step_by(stride).flat_map(values).filter(|v| self.shows(*v)).collect()
        };
        let stride = ((last - first) as usize).div_ceil(count.max(1)).max(1);
        for parts in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
            let ticks = every(parts, if parts.len() == 1 { stride } else { 1 });
            if ticks.len() >= 3 && (ticks.len() <= count || parts.len() == 1) {
                return ticks;
            }
        }
        // The axis spans less than a decade, so linear ticks are used.
        self.linear_ticks(count)
    }
}

/// Ends of an axis that enclose the data, if need be with a margin.
fn widen(log: bool, low: f64, high: f64, from_zero: bool) -> (f64, f64) {
    if !low.is_finite() || !high.is_finite() {
        return if log { (1.0, 10.0) } else { (0.0, 1.0) };
    }
    if log {
        let decades = libm::log10(high) - libm::log10(low);
        let air = if high > low { libm::pow(10.0, decades * 0.04) } else { 2.0 };
        return (low / air, high * air);
    }
    if high <= low {
        let air = if low == 0.0 { 1.0 } else { low.abs() * 0.5 };
        return if from_zero && low >= 0.0 { (0.0, low + air) } else { (low - air, low + air) };
    }
    let air = (high - low) * 0.05;
    if from_zero && low >= 0.0 && low <= high * 0.5 {
        (0.0, high * 1.05)
    } else if from_zero {
        (low - air, high + air)
    } else {
        (low, high)
    }
}

/// The smallest value that is at least `least` and 1, 2 or 5 times a power of ten.
pub(crate) fn round_step(least: f64) -> f64 {
    let least = least.max(1e-300);
    let decade = power(libm::floor(libm::log10(least)) as i32);
    let steps = [1.0, 2.0, 5.0].map(|part| part * decade);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(decade * 10.0)
}

fn power(decade: i32) -> f64 {
    if decade < 0 {
        1.0 / libm::pow(10.0, f64::from(-decade))
    } else {
        libm::pow(10.0, f64::from(decade))
    }
}

fn labels(log: bool, ticks: &[f64]) -> Vec<String> {
    let largest = ticks.iter().fold(0.0f64, |largest, tick| largest.max(tick.abs()));
    let smallest = ticks.iter().map(|tick| tick.abs()).filter(|tick| *tick > 0.0);
    let smallest = smallest.fold(f64::INFINITY, f64::min);
    if log && smallest >= 1e-4 && largest < 1e6 {
        return ticks.iter().map(|tick| decimal(*tick, decimals(&[*tick]))).collect();
    }
    if largest >= 1e6 || (smallest < 1e-3 && largest < 1e-2) || largest / smallest > 1e5 {
        return ticks.iter().map(|tick| scientific(*tick)).collect();
    }
    ticks.iter().map(|tick| decimal(*tick, decimals(ticks))).collect()
}

/// The smallest number of decimals, up to five, with which all ticks are exact.
fn decimals(ticks: &[f64]) -> usize {
    let exact = |places: usize| {
        let scale = power(places as i32);
        ticks.iter().all(|tick| {
            let scaled = tick * scale;
            (scaled - libm::round(scaled)).abs() < 1e-6 * scaled.abs().max(1.0)
        })
    };
    (0..5).find(|places| exact(*places)).unwrap_or(5)
}

/// Writes a number with a true minus sign, and with thousands separated from 10 000 on.
fn decimal(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = if value < 0.0 { "−".to_owned() } else { String::new() };
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && whole.len() > 4 && (whole.len() - index).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text + rest
}

/// Writes a number in scientific notation, such as `2×10⁶`.
fn scientific(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let mut exponent = libm::floor(libm::log10(value.abs()) + 1e-12) as i32;
    let mut factor = value / power(exponent);
    if factor.abs() >= 9.999_999 {
        (factor, exponent) = (factor / 10.0, exponent + 1);
    }
    let superscript = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
    };
    let power: String = exponent.to_string().chars().map(superscript).collect();
    let factor = decimal(factor, decimals(&[factor]));
    if factor == "1" { format!("10{power}") } else { format!("{factor}×10{power}") }
}
