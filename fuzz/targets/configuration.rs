//! The fuzz target of [`harness::configuration`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::configuration::run(data));
