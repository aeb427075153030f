//! The fuzz target of [`harness::frames`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::frames::run(data));
