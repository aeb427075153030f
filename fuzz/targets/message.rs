//! The fuzz target of [`harness::message`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::message::run(data));
