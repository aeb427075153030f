//! The properties of one direction, as on the command line: `delay=10,loss=0.01,rate=200`.

use std::str::FromStr;
use std::time::Duration;

use crate::micros;

/// The properties of one direction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spec {
    /// The delay of each frame.
    pub(crate) delay: Duration,
    /// The additional time of a frame that is overtaken.
    pub(crate) late: Duration,
    /// Probabilities, 0 to 1.
    pub(crate) loss: f64,
    pub(crate) repeat: f64,
    pub(crate) reorder: f64,
    pub(crate) corrupt: f64,
    /// The rate limit in bits per second. `None` is unlimited.
    pub(crate) rate: Option<f64>,
    /// The bytes that may wait for the rate limit. Frames beyond that are dropped.
    pub(crate) queue_bytes: usize,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            delay: Duration::ZERO,
            late: Duration::from_millis(3),
            loss: 0.0,
            repeat: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            rate: None,
            queue_bytes: 256 << 10,
        }
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Spec, String> {
        let mut spec = Spec::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (name, value) =
                word.split_once('=').ok_or_else(|| format!("{word}: expected NAME=NUMBER"))?;
            let number: f64 = value.parse().map_err(|_| format!("{word}: expected a number"))?;
            let is_probability = matches!(name, "loss" | "repeat" | "reorder" | "corrupt");
            if !(0.0..=1e6).contains(&number)
                || is_probability && number > 1.0
                || name == "rate" && number == 0.0
            {
                return Err(format!("{word}: out of range"));
            }
            match name {
                "delay" => spec.delay = micros((number * 1000.0) as u64),
                "late" => spec.late = micros((number * 1000.0) as u64),
                "loss" => spec.loss = number,
                "repeat" => spec.repeat = number,
                "reorder" => spec.reorder = number,
                "corrupt" => spec.corrupt = number,
                "rate" => spec.rate = Some(number * 1e6),
                "queue" => spec.queue_bytes = (number * 1024.0) as usize,
                _ => return Err(format!("{name} is not known")),
            }
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_is_parsed_and_errors_are_rejected() {
        let spec: Spec = "delay=2.5,loss=0.01,rate=200,queue=64".parse().unwrap();
        assert_eq!(spec.delay, micros(2500));
        assert_eq!((spec.loss, spec.rate, spec.queue_bytes), (0.01, Some(200e6), 65_536));
        assert_eq!("".parse::<Spec>().unwrap(), Spec::default());
        for wrong in ["loss", "loss=x", "loss=1.5", "loss=-1", "rate=0", "speed=3", "delay=NaN"] {
            assert!(wrong.parse::<Spec>().is_err(), "{wrong}");
        }
    }
}
