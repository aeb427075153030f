//! The fuzz target of [`harness::hpack`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::hpack::run(data));
