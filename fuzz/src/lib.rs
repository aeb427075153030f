//! Fuzz targets: what each does with the fuzzer's bytes, and what must be true afterwards.
//!
//! Each module is one target. Its `run` takes the bytes, drives a crate of the engine with them,
//! and panics when a promise is broken. Oracles here are simple and know nothing of the code that
//! they judge. Where they need a second opinion (dot-stuffing, checksums of the disk and of
//! packets), they have their own, written from the RFC or from `docs/format.md`.
//!
//! Invariants:
//! - The same bytes do the same: no clock, no chance, no state between two runs.
//! - A run takes milliseconds. Requests in the bytes are reduced to that, never refused.
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
pub mod letter;
pub mod message;
mod network;
pub mod pop3_session;
pub mod relay;
mod script;
pub mod server;
pub mod site;
pub mod smtp_session;
pub mod tcp;
pub mod tls;

/// Worlds are made and dropped by the thousand, each with tables of megabytes at addresses of 64.
/// The C library's allocator splits what it gets back from these until it holds gigabytes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
