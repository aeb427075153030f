//! The engine's promises on a machine with two cores.

mod engine;

/// The machine's cores.
const CORES: u8 = 2;
