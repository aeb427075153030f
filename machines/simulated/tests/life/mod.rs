//! The clients of a long life, and the ledger that judges what they find.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

pub(crate) mod ledger;
pub(crate) mod line;
pub(crate) mod reader;
pub(crate) mod sender;
