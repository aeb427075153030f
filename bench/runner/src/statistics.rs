//! The statistics of repeated measurements.

/// The median.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
        assert!(median(vec![]).is_nan());
    }
}
