//! The page on which somebody says who he is.

use askama::Template;

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
