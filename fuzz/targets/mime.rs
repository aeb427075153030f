//! The fuzz target of [`harness::mime`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::mime::run(data));
