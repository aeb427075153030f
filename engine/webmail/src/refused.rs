//! The page that says, in words, why there is no other.

use askama::Template;

/// The page that says why there is no other.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "refused.html")]
pub struct RefusedPage<'a> {
    /// What it comes to.
    pub title: &'a str,
    /// Why.
    pub words: &'a str,
}
