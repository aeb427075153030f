//! The commands for developers. The script `barepost` hands them to separate programs, so that
//! users compile none of them.

/// The name and the purpose of each command for developers. `barepost --help` lists them.
pub const FOR_DEVELOPERS: &[(&str, &str)] = &[
    ("test", "Run the tests that every change must pass, or the named ones"),
    ("bench", "Run benchmarks"),
    ("pkt", "Play packetdrill scripts against the engine's TCP"),
];
