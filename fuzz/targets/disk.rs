//! The fuzz target of [`harness::disk`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::disk::run(data));
