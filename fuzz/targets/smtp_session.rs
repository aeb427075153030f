//! The fuzz target of [`harness::smtp_session`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::smtp_session::run(data));
