//! The login page.

use askama::Template;
use http::{Reply, Status};

use crate::{Destination, answer};

/// The largest message, in bytes, that the login page keeps until its author has logged in again.
pub(crate) const DRAFT_BYTES_MAX: usize = 64 * 1024;

/// The login page.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "login.html")]
pub struct LoginPage<'a> {
    /// The machine's host name.
    pub host: &'a str,
    /// The name that was entered in the last attempt.
    pub name: &'a str,
    /// The destination after the login: a path under `/mail/`.
    pub next: &'a str,
    /// The reason why the client must log in again.
    pub notice: Option<&'a str>,
    /// The reason why the last attempt failed.
    pub error: Option<&'a str>,
    /// A message that was not accepted because its session had ended. The form sends it again.
    pub draft: &'a str,
}

/// The login page. `name`: the name of the last attempt. `error`: the reason why it failed.
/// `draft`: the message that the client was writing.
pub fn login_page(
    host: &str,
    name: &str,
    next: &Destination,
    error: Option<&str>,
    draft: &str,
) -> Reply {
    let status = if error.is_some() { Status::Forbidden } else { Status::Ok };
    answer::page_of(
        status,
        &LoginPage { host, name, next: next.as_str(), notice: None, error, draft },
    )
}

/// The login page, with the reason why the client must log in again.
pub(crate) fn login_page_with(host: &str, next: &Destination, notice: Option<&str>) -> Reply {
    let next = next.as_str();
    answer::page(&LoginPage { host, name: "", next, notice, error: None, draft: "" })
}
