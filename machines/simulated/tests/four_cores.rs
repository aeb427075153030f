//! The tests of the engine on a machine with four cores.

mod engine;

/// The number of the machine's cores.
const CORES: u8 = 4;
