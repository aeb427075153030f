//! The fuzz target of [`harness::tls`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::tls::run(data));
