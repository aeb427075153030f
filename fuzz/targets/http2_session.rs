//! The fuzz target of [`harness::http2_session`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::http2_session::run(data));
