//! The fuzz target of [`harness::tcp`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::tcp::run(data));
