//! Questions: requests that a program answers, and not the site.
//!
//! Which paths are a program's, and what may be done with them, [`Actions::methods`] says. What the program is to know of a request is copied out of its head, which does not outlive
//! the call in which it came: in HTTP/2 a question may have to wait for its turn, and whoever lets a body come is asked once more when it is there.
//!
//! Answers to: RFC 9110 sections 7.2 and 9, RFC 9113 section 8.2.3 (`Cookie` in several fields), RFC 7617.

use alloc::string::String;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};

use crate::head::{Head, Name};
use crate::target::authority;
use crate::types::{After, Announced, Method, Status};

/// Bytes of a name and a password, with the colon between them.
const CREDENTIALS_BYTES_MAX: usize = 768;

/// What is asked. Of fields that there may be one of there is one, or none; a value that is no text is as good as none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question<'a> {
    /// One of [`crate::Actions::methods`].
    pub method: Method,
    /// What is asked for: decoded, without segments `.` and `..`.
    pub path: &'a str,
    /// What stood behind the `?`, as it stood there: visible ASCII; empty without one.
    pub query: &'a str,
    /// The host that is asked, with its port if it was said; empty if a client of HTTP/1.0 did not say it.
    pub host: &'a str,
    /// By which somebody says who he is: see [`credentials`].
    pub authorization: Option<&'a str>,
    /// All cookies, `; ` between them, however many fields they came in.
    pub cookie: Option<&'a str>,
    /// What the body is.
    pub content_type: Option<&'a str>,
    /// Whose page has the request made (the Fetch Standard).
    pub origin: Option<&'a str>,
    /// The same in words, by a browser that knows them (Fetch Metadata Request Headers).
    pub sec_fetch_site: Option<&'a str>,
    /// The program that asks.
    pub user_agent: Option<&'a str>,
    /// The body that is to come, or has come.
    pub body: Announced,
}

/// The fields of a [`Question`].
const FIELDS: [Name; 6] = [
    Name::Authorization,
    Name::Cookie,
    Name::ContentType,
    Name::Origin,
    Name::SecFetchSite,
    Name::UserAgent,
];

/// A question that waits.
#[derive(Debug)]
pub(crate) struct Asked {
    method: Method,
    target: String,
    path: String,
    host: String,
    values: [Option<String>; FIELDS.len()],
    after: After,
}

/// The value of a field that there may be one of; of cookies all of them.
///
/// Errors: there are several.
fn value(name: Name, head: &Head<'_, '_>) -> Result<Option<String>, Status> {
    let value = match name {
        Name::Cookie if head.has(name) => {
            Some(head.values(name).collect::<Vec<_>>().join(&b"; "[..]))
        }
        _ => head.only(name)?.map(<[u8]>::to_vec),
    };
    Ok(value.and_then(|value| String::from_utf8(value).ok()))
}

impl Asked {
    /// What `head` asks, of a program that answers for `path`.
    ///
    /// Errors: the request says something in two ways.
    pub(crate) fn read(
        method: Method,
        path: &str,
        head: &Head<'_, '_>,
        after: After,
    ) -> Result<Asked, Status> {
        let mut values = [const { None }; FIELDS.len()];
        for (place, name) in values.iter_mut().zip(FIELDS) {
            *place = value(name, head)?;
        }
        let target = String::from_utf8_lossy(head.target).into();
        let host = authority(head).into();
        Ok(Asked { method, target, path: path.into(), host, values, after })
    }

    pub(crate) fn question(&self, body: Announced) -> Question<'_> {
        let [authorization, cookie, content_type, origin, sec_fetch_site, user_agent] =
            self.values.each_ref().map(Option::as_deref);
        Question {
            method: self.method,
            path: &self.path,
            query: self.target.split_once('?').map_or("", |(_, query)| query),
            host: &self.host,
            authorization,
            cookie,
            content_type,
            origin,
            sec_fetch_site,
            user_agent,
            body,
        }
    }

    /// Bytes of memory that it takes, and as many for the copy of it where it is answered.
    pub(crate) fn kept_bytes(&self) -> usize {
        2 * self.bytes()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let values = self.values.iter().flatten().map(String::len).sum::<usize>();
        size_of::<Asked>() + self.target.len() + self.path.len() + self.host.len() + values
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// As the client wrote it.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// What becomes of the connection after its answer.
    pub(crate) fn after(&self) -> After {
        self.after
    }
}

/// The name and the password in the value of a field `Authorization`, if it is of the scheme `Basic`.
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
