//! Who may ask for the certificates over HTTP, and replace them; and what is said to that.
//!
//! An administrator asks which there are (GET), or sends one with its chain and its key to take the place of others (PUT). He says who he is in each request.
//!
//! Invariant: it is spoken of over TLS alone.
//!
//! Answers to: RFC 7617, RFC 9110 sections 9.3.4, 11.6.1 and 11.6.2.

use alloc::string::String;
use alloc::vec::Vec;

use connections::Channel;
use http::{Field, Method, Question, Reply, Status};

use super::shown::{Obstacle, Replaced};

/// Where the certificates are asked for and replaced.
pub const CERTIFICATE_PATH: &str = "/.barepost/certificate";

/// What can be done with them.
pub const METHODS: &[Method] = &[Method::Get, Method::Head, Method::Put];

/// The longest certificate with its chain and its key that is taken, in bytes: half of what a client of HTTP/2 may send unasked on a stream.
pub const UPLOAD_BYTES_MAX: usize = 32 * 1024;

/// How to say who one is.
const CHALLENGE: &str = "Basic realm=\"Barepost\", charset=\"UTF-8\"";

/// What is wanted by whoever proves that he may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// To be told which there are.
    Read,
    /// To send one.
    Replace,
}

impl Wish {
    /// What is wanted, and by whom: a name and a password.
    ///
    /// Errors: what is to be said instead.
    pub fn of(question: &Question<'_>, channel: Channel) -> Result<(Wish, String, Vec<u8>), Reply> {
        if channel == Channel::Plain {
            return Err(Reply::text(Status::Forbidden, "over TLS alone\n".into()));
        }
        let wish = if question.method == Method::Put { Wish::Replace } else { Wish::Read };
        let (name, password) =
            question.authorization.and_then(http::credentials).ok_or_else(unknown)?;
        Ok((wish, name, password))
    }
}

/// Whoever asks has to say who he is.
pub fn unknown() -> Reply {
    Reply::refusal(Status::Unauthorized).with(Field::WwwAuthenticate, CHALLENGE)
}

/// What is said to who has sent a certificate.
pub fn reply_to(replaced: Replaced) -> Reply {
    match replaced {
        Ok(text) => Reply::text(Status::Ok, text),
        Err((Obstacle::Unfit, why)) => Reply::text(Status::UnprocessableContent, why),
        Err((Obstacle::NoSpace, why)) => Reply::text(Status::InsufficientStorage, why),
        Err((Obstacle::Later, why)) => Reply::text(Status::ServiceUnavailable, why),
    }
}
