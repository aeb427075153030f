//! The engine's promises on a machine with one core.

mod engine;

/// The machine's cores.
const CORES: u8 = 1;
