//! The hash of a body, after canonicalization (RFC 6376 §3.4.3, §3.4.4).
//!
//! Invariants:
//! - The hash does not depend on how the body is cut into pieces.
//! - Only a possible end of the body is kept: some line ends, the hash before many line ends, a
//!   carriage return, and white space.
//! - The work for a piece is linear in the length of the piece.

use memchr::{memchr, memchr3};
use ring::digest::{Context, Digest, SHA256};

const LINE_END: &[u8] = b"\r\n";

/// The most line ends that wait for text. Their work is done when text arrives.
const LINE_ENDS_MAX: usize = 64;

/// The canonicalization, which decides which changes in transit do not matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CanonicalForm {
    /// Only empty lines at the end of the body do not matter.
    Simple,
    /// Changes of white space do not matter either.
    Relaxed,
}

/// The hash of a body that is arriving.
pub(crate) struct BodyHash {
    form: CanonicalForm,
    context: Context,
    /// The number of bytes in the hash.
    bytes: u64,
    /// The number of line ends that enter the hash only if text follows. At most
    /// [`LINE_ENDS_MAX`].
    line_ends: usize,
    /// The hash, and the bytes in it, before the first of many line ends that may end the body. The
    /// line ends after it are in `context` already, or counted in `line_ends`.
    before_line_ends: Option<(Context, u64)>,
    /// Whether white space has arrived that enters the hash only if text follows on the same line.
    has_space: bool,
    /// Whether the last byte is a carriage return, which a line feed may follow.
    has_return: bool,
}

/// The hash of a complete body.
pub(crate) struct Hashed {
    pub(crate) digest: Digest,
    /// The number of bytes in the hash.
    pub(crate) bytes: u64,
}

impl BodyHash {
    pub(crate) fn new(form: CanonicalForm) -> BodyHash {
        let context = Context::new(&SHA256);
        BodyHash {
            form,
            context,
            bytes: 0,
            line_ends: 0,
            before_line_ends: None,
            has_space: false,
            has_return: false,
        }
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
                CanonicalForm::Simple => memchr(b'\r', piece),
                CanonicalForm::Relaxed => memchr3(b'\r', b' ', b'\t', piece),
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

    /// Ends the body, and returns the hash.
    pub(crate) fn ended(mut self) -> Hashed {
        if self.has_return {
            self.text(b"\r");
        }
        if let Some(before) = self.before_line_ends.take() {
            (self.context, self.bytes) = before;
        }
        // An empty body is an empty line in the simple form, and nothing in the relaxed form.
        if self.form == CanonicalForm::Simple || self.bytes > 0 {
            self.add(LINE_END);
        }
        Hashed { digest: self.context.finish(), bytes: self.bytes }
    }

    fn line_ended(&mut self) {
        self.has_space = false;
        self.line_ends += 1;
        if self.line_ends == LINE_ENDS_MAX {
            if self.before_line_ends.is_none() {
                self.before_line_ends = Some((self.context.clone(), self.bytes));
            }
            self.add_line_ends();
        }
    }

    /// Adds text without line ends, and in the relaxed form without white space.
    fn text(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        self.before_line_ends = None;
        self.add_line_ends();
        if core::mem::take(&mut self.has_space) {
            self.add(b" ");
        }
        self.add(text);
    }

    fn add_line_ends(&mut self) {
        for _ in 0..core::mem::take(&mut self.line_ends) {
            self.add(LINE_END);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}
