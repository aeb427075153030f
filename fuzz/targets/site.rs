//! The fuzz target of [`harness::site`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::site::run(data));
