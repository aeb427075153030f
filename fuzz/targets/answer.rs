//! The fuzz target of [`harness::answer`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::answer::run(data));
