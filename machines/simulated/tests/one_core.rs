//! The tests of the engine on a machine with one core.

mod engine;

/// The number of the machine's cores.
const CORES: u8 = 1;
