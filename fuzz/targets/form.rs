//! The fuzz target of [`harness::form`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::form::run(data));
