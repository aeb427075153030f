//! The attachments of a message: their names, sizes and addresses.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use message::presentation::Presentation;
use message::structure::Part;
use message::tnef::TnefFile;

use crate::conversation::Attachment;
use crate::moments::size;
use crate::{MessageKey, WebPage};

use super::file_contents::FileContents;

/// The file name of each part: its own or a default name. Equal names are told apart by numbers:
/// the second `a.txt` is `a (2).txt`. So a name depends only on the parts before it.
pub(crate) fn names(parts: &[Part]) -> Vec<String> {
    told_apart(parts.iter().map(wanted_name))
}

fn wanted_name(part: &Part) -> String {
    part.file_name.clone().unwrap_or_else(|| default_name(part))
}

/// The name of a file in a container.
fn inner_name(file: &TnefFile) -> String {
    if file.name.is_empty() { "file".into() } else { file.name.clone() }
}

/// Tells equal names apart by numbers.
fn told_apart(all: impl Iterator<Item = String>) -> Vec<String> {
    // The highest number that each name has.
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    let mut names = Vec::new();
    for wanted in all {
        let first = taken.get(&wanted).map_or(1, |highest| highest + 1);
        let named = |number| if number == 1 { wanted.clone() } else { numbered(&wanted, number) };
        let is_free = |number: &u32| *number == 1 || !taken.contains_key(&named(*number));
        let number = (first..).find(is_free).unwrap_or(first);
        let name = named(number);
        taken.insert(wanted, number);
        taken.entry(name.clone()).or_insert(1);
        names.push(name);
    }
    names
}

/// The file name of the last of `parts`.
pub(super) fn last_name(parts: &[Part]) -> String {
    names(parts).pop().unwrap_or_default()
}

fn default_name(part: &Part) -> String {
    match &*part.media_type {
        "message/rfc822" | "message/global" => "message.eml".into(),
        "text/calendar" => "invite.ics".into(),
        "text/plain" => "text.txt".into(),
        "application/pgp-signature" => "signature.asc".into(),
        "application/pkcs7-signature" | "application/x-pkcs7-signature" => "smime.p7s".into(),
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => "smime.p7m".into(),
        media_type => media_type.replace('/', "."),
    }
}

fn number(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

/// `a.txt` with the number 2 is `a (2).txt`.
fn numbered(name: &str, number: u32) -> String {
    match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, extension)) => format!("{stem} ({number}).{extension}"),
        None => format!("{name} ({number})"),
    }
}

/// An attachment, as text.
pub(super) struct Attached {
    pub(super) name: String,
    size: String,
    href: String,
}

impl Attached {
    /// All files that the presentation of a message lists, and then the files in them. `parts`: the
    /// parts of the message.
    pub(super) fn of(
        parts: &[Part],
        presentation: &Presentation,
        files: &FileContents,
        key: MessageKey,
    ) -> Vec<Attached> {
        let mut listed = presentation.listed().peekable();
        if listed.peek().is_none() {
            return Vec::new();
        }
        let inner = || files.inner_files();
        let wanted = inner().map(|(_, _, file)| inner_name(file));
        let mut names = told_apart(parts.iter().map(wanted_name).chain(wanted));
        let inner_names = names.split_off(parts.len());
        let attached = listed.filter_map(|index| {
            let part = parts.get(index)?;
            Some(Attached {
                name: core::mem::take(names.get_mut(index)?),
                size: size(part.content_bytes()),
                href: WebPage::Part(key, number(index)).to_string(),
            })
        });
        let inner = inner().zip(inner_names).map(|((part, index, file), name)| Attached {
            name,
            size: size(file.bytes.unwrap_or_default()),
            href: WebPage::Inner(key, number(part), number(index)).to_string(),
        });
        attached.chain(inner).collect()
    }

    /// The name and the size.
    pub(super) fn in_words(&self) -> (&str, &str) {
        (&self.name, &self.size)
    }

    /// The link on the page.
    pub(super) fn link(&self) -> Attachment<'_> {
        Attachment { name: &self.name, size: &self.size, href: &self.href }
    }
}
