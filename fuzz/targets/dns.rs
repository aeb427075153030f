//! The fuzz target of [`harness::dns`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::dns::run(data));
