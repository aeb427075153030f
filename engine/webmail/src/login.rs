//! The page on which somebody says who he is.

use askama::Template;
use http::{Reply, Status};

use crate::{Destination, answer};

/// The longest letter that waits for its writer to log in again.
pub(crate) const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The page on which somebody says who he is.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "login.html")]
pub struct LoginPage<'a> {
    /// The machine's name.
    pub host: &'a str,
    /// What he said the last time.
    pub name: &'a str,
    /// Where he wanted to go: a path under `/mail/`.
    pub next: &'a str,
    /// Why he is asked again.
    pub error: Option<&'a str>,
    /// A letter whose sending was refused since he was no longer logged in: it is kept in the form.
    pub kept: &'a str,
}

/// The page on which somebody says who he is. `name`: what he said the last time; `error`: why that did not do; `kept`: the letter that he was writing.
pub fn login_page(
    host: &str,
    name: &str,
    next: &Destination,
    error: Option<&str>,
    kept: &str,
) -> Reply {
    let status = if error.is_some() { Status::Forbidden } else { Status::Ok };
    answer::page_of(status, &LoginPage { host, name, next: next.as_str(), error, kept })
}
