//! The fuzz target of [`harness::pop3_session`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::pop3_session::run(data));
