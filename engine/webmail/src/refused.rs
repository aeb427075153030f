//! The error page.

use askama::Template;

/// The error page.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "refused.html")]
pub struct RefusedPage<'a> {
    /// A short title.
    pub title: &'a str,
    /// The reason.
    pub words: &'a str,
}
