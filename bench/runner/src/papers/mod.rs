//! The experiments of the papers: runs the models of the crate `experiments`, and draws their
//! results beside the paper's.
//!
//! A model counts its work in threads and clocks. So the same commit gives the same figures on
//! every host. A measured time is always a ratio within one run.

pub(super) mod livelock;
pub(super) mod queues;
pub(super) mod scaling;
pub(super) mod self_continuation;

use super::plot::{Series, Shape, Tone};

/// A description of the models' units.
const MODEL: &str = "simulated units of 1 GHz, an instruction a clock, 200 clocks a thread";

fn line(name: impl Into<String>, tone: Tone, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), tone, shape: Shape::Line, points }
}

fn dashes(name: impl Into<String>, tone: Tone, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), tone, shape: Shape::Dashes, points }
}

fn marks(name: impl Into<String>, tone: Tone, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), tone, shape: Shape::Marks, points }
}
