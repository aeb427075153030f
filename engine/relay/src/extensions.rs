//! The extensions that a server offers in its reply to EHLO.
//!
//! Implements: RFC 5321 section 4.1.1.1.

/// The extensions that we use. Other extensions are ignored.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ServerExtensions {
    pub(crate) starttls: bool,
    pub(crate) pipelining: bool,
    pub(crate) eight_bit: bool,
    pub(crate) utf8: bool,
    pub(crate) dsn: bool,
    /// SIZE, with the largest accepted message in bytes. Zero: the server names no limit.
    pub(crate) size: Option<u64>,
    pub(crate) scram: bool,
    pub(crate) plain: bool,
    pub(crate) login: bool,
}

impl ServerExtensions {
    /// Reads one line of the reply, without its code.
    pub(crate) fn learn(&mut self, line: &[u8]) {
        // Before RFC 2554 the form was `AUTH=`. Some servers still send both forms.
        let mut words =
            line.split(|byte| matches!(byte, b' ' | b'=')).filter(|word| !word.is_empty());
        let Some(keyword) = words.next() else { return };
        let is = |name: &[u8]| keyword.eq_ignore_ascii_case(name);
        if is(b"STARTTLS") {
            self.starttls = true;
        } else if is(b"PIPELINING") {
            self.pipelining = true;
        } else if is(b"8BITMIME") {
            self.eight_bit = true;
        } else if is(b"SMTPUTF8") {
            self.utf8 = true;
        } else if is(b"DSN") {
            self.dsn = true;
        } else if is(b"SIZE") {
            self.size = Some(words.next().map_or(0, size));
        } else if is(b"AUTH") {
            for mechanism in words {
                self.scram |= mechanism.eq_ignore_ascii_case(b"SCRAM-SHA-256");
                self.plain |= mechanism.eq_ignore_ascii_case(b"PLAIN");
                self.login |= mechanism.eq_ignore_ascii_case(b"LOGIN");
            }
        }
    }
}

/// The value of SIZE. An invalid number, or one that is too large for us, counts as no limit.
fn size(digits: &[u8]) -> u64 {
    core::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
