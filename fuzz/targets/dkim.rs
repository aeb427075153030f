//! The fuzz target of [`harness::dkim`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::dkim::run(data));
