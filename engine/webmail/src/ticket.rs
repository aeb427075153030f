//! Tickets: the cookie of a session, and the token in its forms.
//!
//! Invariants:
//! - The server stores only the digest of a ticket, so no attacker can read a valid cookie from the
//!   disk.
//! - Secrets are compared in constant time and never printed by `Debug`.
//! - The form token is derived from the secret and does not reveal it.
//! - A request with two cookies of our name is rejected. A browser sends only one, since the cookie
//!   was set for this host only (`__Host-`).
//!
//! Implements: RFC 6265 sections 4.1 and 5.4; RFC 6265bis section 4.1.3.2 (`__Host-`); RFC 9113
//! section 8.2.3; RFC 4648 section 5.

use base64ct::{Base64UrlUnpadded, Encoding};
use core::fmt;
use core::str::FromStr;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The name of the cookie.
const NAME: &str = "__Host-barepost";

/// The attributes of the cookie. It is for this host and all its paths, is sent over TLS only, and
/// is hidden from scripts. From other sites it is sent only when the user follows a link.
const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Lax";

/// The length of a secret, of a digest and of a token, in bytes.
pub const SECRET_BYTES: usize = 32;

/// The length of a secret or a token in base64url, in bytes.
const ENCODED_BYTES: usize = 43;

/// The text that is hashed before the secret to make a token, so that no digest equals a token.
const TOKEN_PURPOSE: &[u8] = b"barepost form";

/// The text is not a [`SessionTicket`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoTicket;

/// The value of the session cookie: `{account, 16 hexadecimal digits}.{secret, base64url}`.
#[derive(Clone)]
pub struct SessionTicket {
    /// The account that the cookie names.
    pub account: u64,
    secret: [u8; SECRET_BYTES],
}

impl SessionTicket {
    /// A new ticket for an account. `secret`: new bytes that no attacker can know or guess.
    pub fn new(account: u64, secret: [u8; SECRET_BYTES]) -> SessionTicket {
        SessionTicket { account, secret }
    }

    /// The ticket in the `Cookie` fields of a request. HTTP/2 may send several fields.
    pub fn of_cookies<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> Option<SessionTicket> {
        let pairs = fields.into_iter().flat_map(|field| field.split(|byte| *byte == b';'));
        let mut ours = pairs.filter_map(|pair| {
            let mut sides = pair.splitn(2, |byte| *byte == b'=');
            let name = sides.next()?.trim_ascii();
            sides.next().filter(|_| name == NAME.as_bytes())
        });
        match (ours.next(), ours.next()) {
            (Some(value), None) => core::str::from_utf8(value.trim_ascii()).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The digest of the secret. Only the digest is written to the disk.
    pub fn digest(&self) -> [u8; SECRET_BYTES] {
        Sha256::digest(self.secret).into()
    }

    /// The token for the forms of the session's pages.
    pub fn form_token(&self) -> FormToken {
        FormToken(
            Sha256::new().chain_update(TOKEN_PURPOSE).chain_update(self.secret).finalize().into(),
        )
    }

    /// The value of `Set-Cookie` that stores the ticket in a browser. The browser deletes it when
    /// the user closes the browser.
    pub fn set_cookie(&self) -> impl fmt::Display {
        fmt::from_fn(move |out| write!(out, "{NAME}={self}; {ATTRIBUTES}"))
    }
}

/// The value of `Set-Cookie` that removes the ticket from a browser.
pub fn clear_cookie() -> impl fmt::Display {
    fmt::from_fn(|out| write!(out, "{NAME}=; Max-Age=0; {ATTRIBUTES}"))
}

impl FromStr for SessionTicket {
    type Err = NoTicket;

    fn from_str(text: &str) -> Result<SessionTicket, NoTicket> {
        let (account, secret) = text.split_once('.').ok_or(NoTicket)?;
        let is_plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if account.len() != 16 || !account.bytes().all(is_plain) {
            return Err(NoTicket);
        }
        let account = u64::from_str_radix(account, 16).map_err(|_| NoTicket)?;
        Ok(SessionTicket { account, secret: decoded(secret).ok_or(NoTicket)? })
    }
}

impl fmt::Display for SessionTicket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}.", self.account)?;
        encoded(&self.secret, out)
    }
}

/// Never prints the secret.
impl fmt::Debug for SessionTicket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SessionTicket({:016x})", self.account)
    }
}

/// The token in a form, which proves that the form comes from a page of the webmail.
#[derive(Clone)]
pub struct FormToken([u8; SECRET_BYTES]);

impl FormToken {
    /// Whether a form's value is the token.
    pub fn is(&self, text: &str) -> bool {
        decoded(text).is_some_and(|text| self.0.ct_eq(&text).into())
    }
}

impl fmt::Display for FormToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        encoded(&self.0, out)
    }
}

/// Never prints the token.
impl fmt::Debug for FormToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FormToken")
    }
}

/// Decodes a text that [`encoded`] has written. A secret has exactly one valid text.
fn decoded(text: &str) -> Option<[u8; SECRET_BYTES]> {
    let mut bytes = [0; SECRET_BYTES];
    let length = Base64UrlUnpadded::decode(text, &mut bytes).ok()?.len();
    (length == SECRET_BYTES).then_some(bytes)
}

fn encoded(bytes: &[u8; SECRET_BYTES], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut room = [0; ENCODED_BYTES];
    out.write_str(Base64UrlUnpadded::encode(bytes, &mut room).map_err(|_| fmt::Error)?)
}
