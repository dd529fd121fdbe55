//! Axes: which values they reach from and to, where a value stands, and which values are written beside them.

/// How values are placed along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal steps; begins at 0.
    Linear,
    /// Equal factors; shows positive values only.
    Logarithmic,
}

/// An axis before its values are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// What the values are, with their unit.
    pub label: String,
    /// How they are placed.
    pub scale: Scale,
}

impl Axis {
    /// The axis that shows all of these values that it can.
    pub(super) fn fit(&self, values: impl Iterator<Item = f64>) -> Fitted {
        let positive = self.scale == Scale::Logarithmic;
        let shown = values.filter(|value| value.is_finite() && (!positive || *value > 0.0));
        let (mut low, mut high) = shown
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        match self.scale {
            Scale::Linear => {
                low = low.min(0.0);
                let step = linear_step(high - low);
                // The last tick is not below the highest value, so that it can be read.
                (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
            }
            Scale::Logarithmic if low == high => (low, high) = (low / 2.0, high * 2.0),
            Scale::Logarithmic => {}
        }
        if low == high {
            high = low + 1.0;
        }
        Fitted { scale: self.scale, low, high }
    }
}

/// An axis that reaches from the lowest value to the highest.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Fitted {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Fitted {
    /// Whether the value has a place.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.low..=self.high).contains(&value)
    }

    /// Where a value stands: 0 at the beginning of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => libm::log(value / self.low) / libm::log(self.high / self.low),
        }
    }

    /// The values to write, ascending, with their texts.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = match self.scale {
            Scale::Linear => {
                let step = linear_step(self.high - self.low);
                let count = ((self.high - self.low) / step).round() as usize;
                (0..=count).map(|tick| self.low + step * tick as f64).collect()
            }
            Scale::Logarithmic => self.logarithmic_ticks(),
        };
        values.into_iter().map(|value| (value, label(value))).collect()
    }

    /// Powers of ten; over few of them also their doubles and fives.
    fn logarithmic_ticks(&self) -> Vec<f64> {
        let (first, last) = (libm::log10(self.low).floor() as i32, libm::log10(self.high).ceil() as i32);
        let decades = libm::log10(self.high / self.low);
        let factors: &[f64] = if decades > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let powers = (first..=last).map(power_of_ten);
        let values = powers.flat_map(|power| factors.iter().map(move |factor| factor * power));
        // A rounding error must not cost the first or the last.
        values.filter(|value| (self.low * 0.999..=self.high * 1.001).contains(value)).collect()
    }
}

fn power_of_ten(power: i32) -> f64 {
    libm::pow(10.0, f64::from(power))
}

/// The step of 1, 2 or 5 times a power of ten that makes four to ten steps over the range.
fn linear_step(range: f64) -> f64 {
    if range <= 0.0 || !range.is_finite() {
        return 1.0;
    }
    let power = power_of_ten(libm::log10(range / 4.0).floor() as i32);
    let wanted = range / 4.0 / power;
    let factor = if wanted >= 5.0 {
        5.0
    } else if wanted >= 2.0 {
        2.0
    } else {
        1.0
    };
    factor * power
}

/// A value as people write it: "2.5 M", "40 k", "0.001".
fn label(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        large if large >= 1e6 => (value / 1e6, " M"),
        large if large >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = format!("{scaled:.6}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64]) -> Vec<String> {
        let axis = Axis { label: String::new(), scale };
        axis.fit(values.iter().copied()).ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn nodes_have_the_ticks_that_people_expect() {
        let ticks = labels(Scale::Logarithmic, &[1.0, 8.0, 100.0]);
        assert_eq!(ticks, ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(labels(Scale::Logarithmic, &[0.0001, 1.0]), ["0.0001", "0.001", "0.01", "0.1", "1"]);
    }

    #[test]
    fn a_linear_axis_begins_at_0_and_ends_above_the_highest() {
        assert_eq!(labels(Scale::Linear, &[120.0, 480.0]), ["0", "100", "200", "300", "400", "500"]);
        let ticks = labels(Scale::Linear, &[27_000.0]);
        assert_eq!(ticks, ["0", "5000", "10 k", "15 k", "20 k", "25 k", "30 k"]);
        assert_eq!(labels(Scale::Linear, &[2_400_000.0]).last().map(String::as_str), Some("2.5 M"));
        for highest in [1.0, 3.3, 7.0, 9.99, 123_456.0, 0.004] {
            let count = labels(Scale::Linear, &[highest]).len();
            assert!((5..=11).contains(&count), "{count} ticks up to {highest}");
        }
    }

    #[test]
    fn places_follow_the_scale() {
        let axis = |scale| Axis { label: String::new(), scale }.fit([1.0, 100.0].into_iter());
        assert!((axis(Scale::Logarithmic).place(10.0) - 0.5).abs() < 1e-9);
        assert!((axis(Scale::Linear).place(50.0) - 0.5).abs() < 1e-9);
        assert!(!axis(Scale::Logarithmic).shows(0.0) && !axis(Scale::Linear).shows(101.0));
    }

    #[test]
    fn no_values_or_equal_ones_make_an_axis() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in [&[][..], &[0.0], &[5.0, 5.0]] {
                let fitted = Axis { label: String::new(), scale }.fit(values.iter().copied());
                assert!(fitted.ticks().len() > 1 || scale == Scale::Logarithmic);
                assert!(fitted.ticks().iter().all(|(value, _)| fitted.place(*value).is_finite()));
            }
        }
    }
}
