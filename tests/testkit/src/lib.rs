//! Helpers that tests and fuzz targets of several protocols share.
#![forbid(unsafe_code)]

pub mod scram;
