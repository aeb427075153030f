//! The fuzz target of [`harness::http_session`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::http_session::run(data));
