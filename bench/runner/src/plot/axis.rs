//! Axes: they map values to positions, and choose the values of the ticks.

/// One direction of a panel.
pub(crate) struct Axis {
    /// The quantity, with its unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

/// The scale of an axis.
pub(crate) enum Scale {
    /// Linear, from 0.
    Linear,
    /// Logarithmic, for values above 0.
    Logarithmic,
    /// One position for each name. Values are indices of names.
    Names(Vec<String>),
}

/// An axis with its ends.
pub(super) struct Span<'a> {
    scale: &'a Scale,
    from: f64,
    to: f64,
    step: f64,
}

impl Axis {
    pub(crate) fn linear(label: &str) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear }
    }

    pub(crate) fn logarithmic(label: &str) -> Axis {
        Axis { label: label.into(), scale: Scale::Logarithmic }
    }

    pub(crate) fn names(label: &str, names: Vec<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Names(names) }
    }

    /// The span that includes all `values`.
    pub(super) fn span(&self, values: impl Iterator<Item = f64>) -> Span<'_> {
        let (least, most) = values
            .fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        let scale = &self.scale;
        match scale {
            Scale::Linear => {
                let step = step_of(most.max(f64::MIN_POSITIVE));
                Span { scale, from: 0.0, to: (most / step).ceil().max(1.0) * step, step }
            }
            Scale::Logarithmic => {
                let (from, to) = (least.log10().floor(), most.log10().ceil());
                Span { scale, from, to: to.max(from + 1.0), step: 1.0 }
            }
            Scale::Names(names) => {
                Span { scale, from: -0.5, to: names.len() as f64 - 0.5, step: 1.0 }
            }
        }
    }
}

impl Span<'_> {
    /// The position of `value`: 0 at the beginning of the axis, 1 at its end.
    pub(super) fn part(&self, value: f64) -> f64 {
        let place = if matches!(self.scale, Scale::Logarithmic) { value.log10() } else { value };
        ((place - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// The ticks: values and their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Names(names) => {
                names.iter().enumerate().map(|(index, name)| (index as f64, name.clone())).collect()
            }
            Scale::Linear | Scale::Logarithmic => {
                let count = ((self.to - self.from) / self.step).round() as u32;
                let places = (0..=count).map(|index| self.from + f64::from(index) * self.step);
                let is_logarithmic = matches!(self.scale, Scale::Logarithmic);
                let values =
                    places.map(|place| if is_logarithmic { 10_f64.powf(place) } else { place });
                values.map(|value| (value, named(value))).collect()
            }
        }
    }
}

/// The step between ticks: 1, 2 or 5 times a power of ten. `most` takes four to ten steps.
fn step_of(most: f64) -> f64 {
    let power = 10_f64.powf((most / 4.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|times| times * power);
    steps.into_iter().find(|step| most / step >= 4.0).unwrap_or(power)
}

/// The shortest form of a number.
fn named(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, " G"),
        large if large >= 1e6 => (value / 1e6, " M"),
        large if large >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let rounded = (scaled * 1e4).round() / 1e4;
    format!("{rounded}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_steps_are_round_and_four_to_ten_fit() {
        for most in [0.7, 1.0, 3.2, 9.9, 488.0, 100_000.0, 7.3e8] {
            let count = most / step_of(most);
            assert!((4.0..=10.0).contains(&count), "{most}: {count}");
        }
        assert_eq!(step_of(488.0), 100.0);
    }

    #[test]
    fn names_of_axis_values_are_short() {
        assert_eq!(
            [0.0, 0.1, 2.5, 5_000.0, 20_000.0, 1e6, 2.5e9].map(named),
            ["0", "0.1", "2.5", "5000", "20 k", "1 M", "2.5 G"]
        );
    }

    #[test]
    fn every_value_is_between_the_ends_of_its_axis() {
        let axis = Axis::logarithmic("calls");
        let span = axis.span([5.0, 10_000.0].into_iter());
        assert_eq!((span.part(1.0), span.part(100.0), span.part(10_000.0)), (0.0, 0.5, 1.0));
        let axis = Axis::linear("clocks");
        let span = axis.span([3.0, 488.0].into_iter());
        assert_eq!((span.part(0.0), span.part(500.0)), (0.0, 1.0));
        let axis = Axis::names("pairs", vec!["a".into(), "b".into()]);
        assert_eq!(axis.span([0.0, 1.0].into_iter()).part(0.0), 0.25);
    }
}
