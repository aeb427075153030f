//! The engine's promises on a machine with four cores.

mod engine;

/// The machine's cores.
const CORES: u8 = 4;
