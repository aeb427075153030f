//! A message as it arrived, and as it goes on paper.

use askama::Template;

use crate::frame::Frame;
use crate::prose::Unfolded;

/// A message as it arrived.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "source.html")]
pub struct SourcePage<'a> {
    /// What surrounds it.
    pub frame: Frame<'a>,
    /// What it is about.
    pub subject: &'a str,
    /// The page that it is read on.
    pub back: &'a str,
    /// Where all of it is, as a file.
    pub download: &'a str,
    /// Its octets, as far as they are shown; those that are no UTF-8 replaced.
    pub octets: &'a str,
    /// Whether there is more of it than is shown.
    pub is_cut: bool,
}

/// A message as it goes on paper.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    /// Who wrote it: a name, or the address where there is none.
    pub from: &'a str,
    /// Under which address.
    pub address: &'a str,
    /// To whom, for people.
    pub to: &'a str,
    /// When, for people.
    pub date: &'a str,
    /// When, exactly (RFC 3339).
    pub moment: &'a str,
    /// What it says; of a page its text.
    pub text: &'a str,
    /// The names of the files that came along.
    pub attachments: &'a [&'a str],
}

impl<'a> Printed<'a> {
    fn prose(&self) -> Unfolded<'a> {
        Unfolded(self.text)
    }
}

/// Messages as they go on paper, with nothing around them.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "print.html")]
pub struct PrintPage<'a> {
    /// Whose mail it is.
    pub address: &'a str,
    /// What they are about.
    pub subject: &'a str,
    /// The page that they are read on.
    pub back: &'a str,
    /// Those that are printed, the oldest first.
    pub letters: &'a [Printed<'a>],
}
