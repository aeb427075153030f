//! The hash of a body, which is brought into a form first that survives what happens on the way (RFC 6376 §3.4.3, §3.4.4).
//!
//! Invariants:
//! - The hash does not depend on how the body is cut into pieces.
//! - Nothing of the body is kept but what it may end with: a count of empty lines, a carriage return, white space.

use memchr::{memchr, memchr3};
use ring::digest::{Context, Digest, SHA256};

const LINE_END: &[u8] = b"\r\n";

/// How much of what happens on the way does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Empty lines at the end.
    Simple,
    /// White space too.
    Relaxed,
}

/// A body that arrives.
pub(crate) struct BodyHash {
    form: Form,
    context: Context,
    /// Bytes that the hash is of.
    bytes: u64,
    /// Line ends that count once something follows.
    line_ends: u64,
    /// White space has come that counts once something follows in its line.
    has_space: bool,
    /// A carriage return has come that a line feed may follow.
    has_return: bool,
}

/// A body that has arrived.
pub(crate) struct Hashed {
    pub(crate) digest: Digest,
    /// Bytes that it is of.
    pub(crate) bytes: u64,
}

impl BodyHash {
    pub(crate) fn new(form: Form) -> BodyHash {
        let context = Context::new(&SHA256);
        BodyHash { form, context, bytes: 0, line_ends: 0, has_space: false, has_return: false }
    }

    pub(crate) fn arrived(&mut self, mut piece: &[u8]) {
        while let Some((first, rest)) = piece.split_first() {
            if core::mem::take(&mut self.has_return) {
                if *first == b'\n' {
                    self.line_ended();
                    piece = rest;
                    continue;
                }
                self.text(b"\r");
            }
            let end = match self.form {
                Form::Simple => memchr(b'\r', piece),
                Form::Relaxed => memchr3(b'\r', b' ', b'\t', piece),
            };
            let (text, rest) =
                piece.split_at_checked(end.unwrap_or(piece.len())).unwrap_or_default();
            self.text(text);
            piece = match rest.split_first() {
                Some((b'\r', rest)) => {
                    self.has_return = true;
                    rest
                }
                Some((_, rest)) => {
                    self.has_space = true;
                    rest
                }
                None => return,
            };
        }
    }

    pub(crate) fn ended(mut self) -> Hashed {
        if self.has_return {
            self.text(b"\r");
        }
        // Of an empty body the simple form is an empty line, the relaxed one nothing.
        if self.form == Form::Simple || self.bytes > 0 {
            self.add(LINE_END);
        }
        Hashed { digest: self.context.finish(), bytes: self.bytes }
    }

    fn line_ended(&mut self) {
        self.has_space = false;
        self.line_ends += 1;
    }

    /// What is no line end, and in the relaxed form no white space.
    fn text(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        for _ in 0..core::mem::take(&mut self.line_ends) {
            self.add(LINE_END);
        }
        if core::mem::take(&mut self.has_space) {
            self.add(b" ");
        }
        self.add(text);
    }

    fn add(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}
