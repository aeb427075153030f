//! Fuzz targets. Each one uses the fuzzer's bytes as input of some crates, and checks the results.
//!
//! Each public module is one target. Its `run` takes the bytes, drives a crate of the engine with
//! them, and panics when a promise is broken. The oracles are simple and do not use the code that
//! they check. For dot-stuffing and for checksums of the disk and of packets, they have a separate
//! implementation. It is written from the RFC or from `docs/format.md`.
//!
//! Invariants:
//! - A run depends only on its bytes: it uses no clock and no randomness, and keeps no state.
//! - A run takes milliseconds. Large numbers in the bytes are reduced, so no input is refused.
#![forbid(unsafe_code)]

pub mod answer;
pub mod configuration;
mod conversation;
pub mod disk;
pub mod dkim;
pub mod dns;
pub mod form;
pub mod frames;
pub mod hpack;
pub mod http2_session;
pub mod http_session;
pub mod message;
pub mod mime;
mod network;
pub mod pop3_session;
pub mod relay;
mod script;
pub mod server;
pub mod site;
pub mod smtp_session;
pub mod tcp;
pub mod tls;

/// Targets create and drop thousands of test worlds. Each has tables of megabytes, aligned to 64
/// bytes. The C library's allocator splits the freed tables until the process holds gigabytes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
