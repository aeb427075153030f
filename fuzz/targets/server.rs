//! The fuzz target of [`harness::server`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::server::run(data));
