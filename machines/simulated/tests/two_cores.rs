//! The tests of the engine on a machine with two cores.

mod engine;

/// The number of the machine's cores.
const CORES: u8 = 2;
