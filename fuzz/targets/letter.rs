//! The fuzz target of [`harness::letter`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::letter::run(data));
