//! The fuzz target of [`harness::relay`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::relay::run(data));
