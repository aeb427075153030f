//! Requests for the TLS certificates over HTTP: access control, and replies.
//!
//! An administrator lists the certificates (GET), or uploads a certificate with its chain and key,
//! which replaces others (PUT). Each request carries the administrator's credentials.
//!
//! Invariant: certificates are managed over TLS only.
//!
//! Implements: RFC 7617, RFC 9110 sections 9.3.4, 11.6.1 and 11.6.2.

use alloc::string::String;
use alloc::vec::Vec;

use connections::Channel;
use http::{HandlerRequest, Method, Reply, ReplyField, Status};

use super::shown::{Obstacle, Replaced};

/// The path of the certificates.
pub const CERTIFICATE_PATH: &str = "/.barepost/certificate";

/// The supported methods.
pub const METHODS: &[Method] = &[Method::Get, Method::Head, Method::Put];

/// The longest certificate with its chain and its key, in bytes: half of what a client of HTTP/2
/// may send on a stream without a window update.
pub const UPLOAD_BYTES_MAX: usize = 32 * 1024;

/// The authentication challenge.
const CHALLENGE: &str = "Basic realm=\"Barepost\", charset=\"UTF-8\"";

/// The purpose of an authorized request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertificateAction {
    /// To list the certificates.
    Read,
    /// To upload a certificate.
    Replace,
}

impl CertificateAction {
    /// The purpose of a request, with the user name and the password of the client.
    ///
    /// Errors: the reply to send instead.
    pub fn of(
        question: &HandlerRequest<'_>,
        channel: Channel,
    ) -> Result<(CertificateAction, String, Vec<u8>), Reply> {
        if channel == Channel::Plain {
            return Err(Reply::text(
                Status::Forbidden,
                "Use HTTPS: this page is not available without TLS.\n".into(),
            ));
        }
        let action = if question.method == Method::Put {
            CertificateAction::Replace
        } else {
            CertificateAction::Read
        };
        let (name, password) =
            question.authorization.and_then(http::credentials).ok_or_else(unknown)?;
        Ok((action, name, password))
    }
}

/// The reply to a client without valid credentials.
pub fn unknown() -> Reply {
    Reply::refusal(Status::Unauthorized).with(ReplyField::WwwAuthenticate, CHALLENGE)
}

/// The reply to the client that has uploaded a certificate.
pub fn reply_to(replaced: Replaced) -> Reply {
    match replaced {
        Ok(text) => Reply::text(Status::Ok, text),
        Err((Obstacle::Unfit, why)) => Reply::text(Status::UnprocessableContent, why),
        Err((Obstacle::NoSpace, why)) => Reply::text(Status::InsufficientStorage, why),
        Err((Obstacle::Later, why)) => Reply::text(Status::ServiceUnavailable, why),
    }
}
