//! The engine's promises on a machine with eight cores.

mod engine;

/// The machine's cores.
const CORES: u8 = 8;
