//! A statement that the page shows above a message. It says what kind of message this is, such as a
//! report on another message.
//!
//! Invariant: a statement says only what the message claims, and never that it is true.

use alloc::string::String;
use alloc::vec::Vec;

/// A statement about the kind of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KindNotice {
    /// A sentence.
    pub words: String,
    /// Facts after the sentence: the name of each, and its text.
    pub facts: Vec<(String, String)>,
}

impl KindNotice {
    /// A sentence without facts.
    pub(crate) fn sentence(words: &str) -> KindNotice {
        KindNotice { words: words.into(), facts: Vec::new() }
    }
}
