//! Types that requests and responses share: methods, statuses, and the state of a connection after
//! a response.
//!
//! Implements: RFC 9110 sections 9 and 15; RFC 6797.

/// A method that a handler may support.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are the protocol's words")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
}

impl Method {
    pub(crate) fn of(name: &[u8]) -> Option<Method> {
        let all = [Method::Get, Method::Head, Method::Post, Method::Put];
        all.into_iter().find(|method| method.name().as_bytes() == name)
    }

    /// The name in a request line.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }
}

/// The body that a request announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Announced {
    /// No body.
    Nothing,
    /// A body of this many bytes.
    Bytes(u64),
    /// A body of unknown length.
    Something,
}

/// The status of a response (RFC 9110 section 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are the protocol's words")]
pub enum Status {
    Ok,
    NoContent,
    PartialContent,
    MovedPermanently,
    SeeOther,
    NotModified,
    PermanentRedirect,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    PreconditionFailed,
    ContentTooLarge,
    UriTooLong,
    RangeNotSatisfiable,
    ExpectationFailed,
    UnprocessableContent,
    TooManyRequests,
    HeaderFieldsTooLarge,
    NotImplemented,
    ServiceUnavailable,
    VersionNotSupported,
    InsufficientStorage,
}

impl Status {
    /// The status code, such as 200.
    pub fn code(self) -> u16 {
        match self {
            Status::Ok => 200,
            Status::NoContent => 204,
            Status::PartialContent => 206,
            Status::MovedPermanently => 301,
            Status::SeeOther => 303,
            Status::NotModified => 304,
            Status::PermanentRedirect => 308,
            Status::BadRequest => 400,
            Status::Unauthorized => 401,
            Status::Forbidden => 403,
            Status::NotFound => 404,
            Status::MethodNotAllowed => 405,
            Status::RequestTimeout => 408,
            Status::PreconditionFailed => 412,
            Status::ContentTooLarge => 413,
            Status::UriTooLong => 414,
            Status::RangeNotSatisfiable => 416,
            Status::ExpectationFailed => 417,
            Status::UnprocessableContent => 422,
            Status::TooManyRequests => 429,
            Status::HeaderFieldsTooLarge => 431,
            Status::NotImplemented => 501,
            Status::ServiceUnavailable => 503,
            Status::VersionNotSupported => 505,
            Status::InsufficientStorage => 507,
        }
    }

    /// The code and the reason phrase, as in a status line.
    pub(crate) fn text(self) -> &'static str {
        self.line().trim_ascii_end()
    }

    /// The code and the reason phrase as a line of text, with a line end.
    pub(crate) fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK\n",
            Status::NoContent => "204 No Content\n",
            Status::PartialContent => "206 Partial Content\n",
            Status::MovedPermanently => "301 Moved Permanently\n",
            Status::SeeOther => "303 See Other\n",
            Status::NotModified => "304 Not Modified\n",
            Status::PermanentRedirect => "308 Permanent Redirect\n",
            Status::BadRequest => "400 Bad Request\n",
            Status::Unauthorized => "401 Unauthorized\n",
            Status::Forbidden => "403 Forbidden\n",
            Status::NotFound => "404 Not Found\n",
            Status::MethodNotAllowed => "405 Method Not Allowed\n",
            Status::RequestTimeout => "408 Request Timeout\n",
            Status::PreconditionFailed => "412 Precondition Failed\n",
            Status::ContentTooLarge => "413 Content Too Large\n",
            Status::UriTooLong => "414 URI Too Long\n",
            Status::RangeNotSatisfiable => "416 Range Not Satisfiable\n",
            Status::ExpectationFailed => "417 Expectation Failed\n",
            Status::UnprocessableContent => "422 Unprocessable Content\n",
            Status::TooManyRequests => "429 Too Many Requests\n",
            Status::HeaderFieldsTooLarge => "431 Request Header Fields Too Large\n",
            Status::NotImplemented => "501 Not Implemented\n",
            Status::ServiceUnavailable => "503 Service Unavailable\n",
            Status::VersionNotSupported => "505 HTTP Version Not Supported\n",
            Status::InsufficientStorage => "507 Insufficient Storage\n",
        }
    }
}

/// The state of the connection after a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// The connection stays open, and the response does not say so: this is the default of
    /// HTTP/1.1.
    Open,
    /// The connection stays open, and the response says so to a client of HTTP/1.0.
    OpenAsAsked,
    /// The connection is closed.
    Close,
}

/// The HTTPS policy of a connection (RFC 6797).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HttpsPolicy {
    /// Pages are served on this connection, and responses do not mention TLS.
    Optional,
    /// The connection is plaintext, but pages are served over TLS only. The client is redirected.
    Redirect,
    /// The connection uses TLS, and responses tell the client to use only TLS from now on.
    Enforced,
}
