//! The messages of SCRAM (RFC 5802 section 7): parsing and writing.
//!
//! ```text
//! client-first   n,,n=ada,r=CLIENT               header, user name, the client's nonce
//! server-first   r=CLIENTSERVER,s=SALT,i=16384   both nonces, salt and iterations
//! client-final   c=biws,r=CLIENTSERVER,p=PROOF   the header again, both nonces, the proof
//! server-final   v=SIGNATURE
//! ```
//!
//! The proof covers three parts, joined by commas: the client's first message without its header,
//! the server's first message, and the client's final message without its proof. The header says
//! whether the client uses channel binding. `n`: the client does not support it. `y`: the client
//! supports it, but believes that we do not, which is true. `p=`: the client uses it, and is
//! refused, as the RFC requires. Unknown attributes are skipped where RFC 5802 allows them, except
//! `m=`. This attribute marks a mandatory extension, so the exchange is refused.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};

use crate::answer::SaslStep;
use crate::grammar::{decoded, name};
use crate::hash::{HASH_BYTES, SALT_BYTES};
use crate::nonces::NONCE_BYTES;

/// The longest nonce of a client, in bytes. Existing clients send 18 to 64. With a longer nonce,
/// the challenge would not fit into the line lengths of all protocols.
const CLIENT_NONCE_BYTES_MAX: usize = 96;

/// Bytes of the longest server-first-message: the nonces, the salt in base64, and a number of ten
/// digits.
const SERVER_FIRST_BYTES_MAX: usize =
    b"r=,s=,i=".len() + CLIENT_NONCE_BYTES_MAX + NONCE_BYTES + SALT_BYTES.div_ceil(3) * 4 + 10;

/// The longest challenge, in bytes of base64.
pub const CHALLENGE_BYTES_MAX: usize = SERVER_FIRST_BYTES_MAX.div_ceil(3) * 4;

/// The challenge to a client, without the client's nonce.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Puzzle {
    /// The salt of the password hash.
    pub salt: [u8; SALT_BYTES],
    /// The number of iterations of the hash.
    pub iterations: u32,
    /// Our nonce, from [`crate::Nonces`].
    pub nonce: String,
}

/// A client's proof that it knows its password, for [`crate::Verifier::check`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScramProof {
    /// The messages of both sides, which the proof covers: `AuthMessage`.
    pub(crate) auth_message: Vec<u8>,
    pub(crate) proof: [u8; HASH_BYTES],
}

/// The first message of a client.
#[derive(Debug)]
pub(crate) struct ClientFirst<'a> {
    /// The GS2 header, with its last comma.
    header: &'a str,
    /// The identity to act as. Empty: the client's own.
    pub(crate) acts_for: String,
    pub(crate) name: String,
    nonce: &'a str,
    /// The message without the header.
    bare: &'a str,
}

/// An exchange after the challenge.
#[derive(Debug)]
pub(crate) struct Puzzled {
    name: String,
    /// The header in base64, which the client must repeat.
    header: String,
    /// Both nonces, which the client must repeat too.
    nonce: String,
    /// The beginning of `AuthMessage`: the client's first message without its header, a comma, and
    /// the server's first message.
    auth_message: String,
}

impl<'a> ClientFirst<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> Option<ClientFirst<'a>> {
        let message = core::str::from_utf8(message).ok()?;
        let (binding, rest) = message.split_once(',')?;
        if !matches!(binding, "n" | "y") {
            return None;
        }
        let (acts_for, bare) = rest.split_once(',')?;
        let acts_for = if acts_for.is_empty() {
            String::new()
        } else {
            plain_name(acts_for.strip_prefix("a=")?)?
        };
        let mut attributes = bare.split(',');
        let name = plain_name(attributes.next()?.strip_prefix("n=")?)?;
        let nonce = attributes.next()?.strip_prefix("r=").filter(|nonce| is_nonce(nonce))?;
        let header = message.get(..message.len() - bare.len())?;
        attributes.all(is_extension).then_some(ClientFirst { header, acts_for, name, nonce, bare })
    }

    /// Answers with `puzzle`. Returns the state and the challenge in base64.
    pub(crate) fn answered_by(self, puzzle: &Puzzle) -> (Puzzled, Vec<u8>) {
        let nonce = format!("{}{}", self.nonce, puzzle.nonce);
        let salt = Base64::encode_string(&puzzle.salt);
        let server_first = format!("r={nonce},s={salt},i={}", puzzle.iterations);
        let challenge = Base64::encode_string(server_first.as_bytes()).into_bytes();
        let header = Base64::encode_string(self.header.as_bytes());
        let auth_message = format!("{},{server_first}", self.bare);
        (Puzzled { name: self.name, header, nonce, auth_message }, challenge)
    }
}

impl Puzzled {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The proof in a client's last message. Errors: the answer to a message without a proof for
    /// this exchange.
    pub(crate) fn proof(&self, message: &[u8]) -> Result<ScramProof, SaslStep> {
        let last = ClientFinal::parse(message).ok_or(SaslStep::Malformed)?;
        if last.header != self.header || last.nonce != self.nonce {
            return Err(SaslStep::NotAllowed);
        }
        let auth_message =
            [self.auth_message.as_bytes(), b",", last.without_proof.as_bytes()].concat();
        Ok(ScramProof { auth_message, proof: last.proof })
    }
}

/// The last message of a client.
struct ClientFinal<'a> {
    header: &'a str,
    nonce: &'a str,
    without_proof: &'a str,
    proof: [u8; HASH_BYTES],
}

impl<'a> ClientFinal<'a> {
    fn parse(message: &'a [u8]) -> Option<ClientFinal<'a>> {
        let message = core::str::from_utf8(message).ok()?;
        let (without_proof, proof) = message.rsplit_once(",p=")?;
        let proof = decoded(proof)?;
        let mut attributes = without_proof.split(',');
        let header = attributes.next()?.strip_prefix("c=")?;
        let nonce = attributes.next()?.strip_prefix("r=")?;
        attributes.all(is_extension).then_some(ClientFinal { header, nonce, without_proof, proof })
    }
}

/// Decodes a user name with `=2C` for a comma and `=3D` for `=`.
fn plain_name(escaped: &str) -> Option<String> {
    let mut parts = escaped.split('=');
    let mut plain = String::from(parts.next()?);
    for part in parts {
        let (sign, rest) = match part.strip_prefix("2C") {
            Some(rest) => (',', rest),
            None => ('=', part.strip_prefix("3D")?),
        };
        plain.push(sign);
        plain.push_str(rest);
    }
    name(plain.as_bytes())?;
    Some(plain)
}

fn is_nonce(nonce: &str) -> bool {
    (1..=CLIENT_NONCE_BYTES_MAX).contains(&nonce.len())
        && nonce.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether this attribute may be skipped.
fn is_extension(attribute: &str) -> bool {
    match attribute.split_once('=') {
        Some((name, value)) => {
            name.len() == 1
                && name.bytes().all(|byte| byte.is_ascii_alphabetic())
                && name != "m"
                && !value.is_empty()
                && !value.contains('\0')
        }
        None => false,
    }
}
