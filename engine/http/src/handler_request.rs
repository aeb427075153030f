//! Requests that are answered by a handler instead of the site.
//!
//! [`crate::Actions::methods`] says which paths belong to a handler and which methods they support.
//! The fields that a handler may need are copied from the head, since the head exists only during
//! the call in which it arrives. The copy is kept, for two reasons. In HTTP/2 a request may have to
//! wait for its turn. And a handler that admits a body gets the request again when the body is
//! complete.
//!
//! Implements: RFC 9110 sections 7.2 and 9, RFC 9113 section 8.2.3 (`Cookie` in several fields),
//! RFC 7617.

use alloc::string::String;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};

use crate::head::{FieldName, RequestHead};
use crate::target::authority;
use crate::types::{After, Announced, Method, Status};

/// The longest user name and password together, in bytes, including the colon between them.
const CREDENTIALS_BYTES_MAX: usize = 768;

/// A request for a handler. A header field is `None` if the request does not have it, or if its
/// value is not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandlerRequest<'a> {
    /// The method, which is in [`crate::Actions::methods`].
    pub method: Method,
    /// The path: decoded, without segments `.` and `..`.
    pub path: &'a str,
    /// The text after the `?`, as the client wrote it: visible ASCII. Empty if there is none.
    pub query: &'a str,
    /// The host that the client asks for, with its port if the client gave one. Empty if a client
    /// of HTTP/1.0 sent none.
    pub host: &'a str,
    /// The credentials of the client: see [`credentials`].
    pub authorization: Option<&'a str>,
    /// All cookies of all `Cookie` fields, joined by `; `.
    pub cookie: Option<&'a str>,
    /// The media type of the body.
    pub content_type: Option<&'a str>,
    /// The origin of the page that made the request (the Fetch Standard).
    pub origin: Option<&'a str>,
    /// What the browser wants the reply for, if it says so: `document`, `image` and so on (Fetch
    /// Metadata Request Headers).
    pub sec_fetch_dest: Option<&'a str>,
    /// The relation of `origin` to our origin, if the browser sends it (Fetch Metadata Request
    /// Headers).
    pub sec_fetch_site: Option<&'a str>,
    /// The name of the client program.
    pub user_agent: Option<&'a str>,
    /// The length of the body, which has arrived or is expected.
    pub body: Announced,
}

/// The header fields that a [`HandlerRequest`] has, in the order of [`QueuedRequest::values`].
const FIELDS: [FieldName; 7] = [
    FieldName::Authorization,
    FieldName::Cookie,
    FieldName::ContentType,
    FieldName::Origin,
    FieldName::SecFetchDest,
    FieldName::SecFetchSite,
    FieldName::UserAgent,
];

/// A request that waits for its turn, or for the handler's reply.
#[derive(Debug)]
pub(crate) struct QueuedRequest {
    method: Method,
    target: String,
    path: String,
    host: String,
    values: [Option<String>; FIELDS.len()],
    after: After,
}

/// The value of the field `name`, which may occur once. `Cookie` may occur several times, and its
/// values are joined.
///
/// Errors: the field occurs more than once.
fn value(name: FieldName, head: &RequestHead<'_, '_>) -> Result<Option<String>, Status> {
    let value = match name {
        FieldName::Cookie if head.has(name) => {
            Some(head.values(name).collect::<Vec<_>>().join(&b"; "[..]))
        }
        _ => head.only(name)?.map(<[u8]>::to_vec),
    };
    Ok(value.and_then(|value| String::from_utf8(value).ok()))
}

impl QueuedRequest {
    /// Reads the request in `head` for the handler of `path`.
    ///
    /// Errors: the request is ambiguous.
    pub(crate) fn read(
        method: Method,
        path: &str,
        head: &RequestHead<'_, '_>,
        after: After,
    ) -> Result<QueuedRequest, Status> {
        let mut values = [const { None }; FIELDS.len()];
        for (place, name) in values.iter_mut().zip(FIELDS) {
            *place = value(name, head)?;
        }
        let target = String::from_utf8_lossy(head.target).into();
        let host = authority(head).into();
        Ok(QueuedRequest { method, target, path: path.into(), host, values, after })
    }

    pub(crate) fn question(&self, body: Announced) -> HandlerRequest<'_> {
        let [
            authorization,
            cookie,
            content_type,
            origin,
            sec_fetch_dest,
            sec_fetch_site,
            user_agent,
        ] = self.values.each_ref().map(Option::as_deref);
        HandlerRequest {
            method: self.method,
            path: &self.path,
            query: self.target.split_once('?').map_or("", |(_, query)| query),
            host: &self.host,
            authorization,
            cookie,
            content_type,
            origin,
            sec_fetch_dest,
            sec_fetch_site,
            user_agent,
            body,
        }
    }

    /// The memory of the request and of its copy in the handler, in bytes.
    pub(crate) fn kept_bytes(&self) -> usize {
        2 * self.bytes()
    }

    /// The memory of the request, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let values = self.values.iter().flatten().map(String::len).sum::<usize>();
        size_of::<QueuedRequest>() + self.target.len() + self.path.len() + self.host.len() + values
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// The target, as the client wrote it.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// The state of the connection after the reply.
    pub(crate) fn after(&self) -> After {
        self.after
    }
}

/// The user name and the password in the value of an `Authorization` field, if its scheme is
/// `Basic`.
pub fn credentials(authorization: &str) -> Option<(String, Vec<u8>)> {
    let (scheme, token) = authorization.split_once(' ')?;
    let mut decoded = [0; CREDENTIALS_BYTES_MAX];
    let decoded = Base64::decode(token.trim_ascii_start(), &mut decoded).ok()?;
    let (name, password) =
        decoded.split_at_checked(decoded.iter().position(|byte| *byte == b':')?)?;
    let name = core::str::from_utf8(name).ok()?;
    scheme
        .eq_ignore_ascii_case("Basic")
        .then(|| (name.into(), password.get(1..).unwrap_or_default().into()))
}
