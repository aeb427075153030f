//! What in a letter is made to be taken for something else: links that name one host and lead to another, hosts whose letters come from several alphabets, and senders whose
//! names look like addresses of others.
//!
//! HTML of a letter lies in a frame that runs nothing, so nobody can be shown there where a link goes: what is to be doubted stands beside it, in words.
//!
//! Invariants:
//! - What is said names hosts and addresses alone, of letters, digits, dots and hyphens: no text of the letter finds its way around them.
//! - At most [`DOUBTS_MAX`] things are said of a letter; the work is linear in its text.
//!
//! Answers to: UTS 39 sections 4 (Latin letters alone) and 5, RFC 3492, RFC 3986 section 3.2, RFC 5890.

mod hosts;
mod links;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::header::Mailbox;

use hosts::Host;

/// Doubts that a reader is told of one letter.
pub(crate) const DOUBTS_MAX: usize = 10;

/// What is to be doubted about who sent a letter.
pub(crate) fn of_sender(sender: &Mailbox) -> Vec<String> {
    let mut doubts = Vec::new();
    let named = sender
        .name
        .split(|letter: char| letter.is_whitespace() || "<>()[]\"'“”,;:".contains(letter));
    let other =
        named.filter_map(address).find(|named| !named.eq_ignore_ascii_case(&sender.address));
    if let (Some(other), Some(own)) = (other, address(&sender.address)) {
        doubts.push(format!("The sender's name says {other}, but the letter comes from {own}."));
    }
    let host = sender.address.rsplit_once('@').and_then(|(_, host)| Host::of(host));
    if let Some((host, doubt)) = host.and_then(|host| host.doubt().map(|doubt| (host, doubt))) {
        doubts.push(format!("The sender's address is at {host}, {doubt}."));
    }
    doubts
}

/// What is to be doubted about the links of a page.
pub(crate) fn of_html(html: &str) -> Vec<String> {
    doubts(links::in_html(html).filter_map(|link| link.doubt()))
}

/// What is to be doubted about the addresses in a text. They are shown whole.
pub(crate) fn of_text(text: &str) -> Vec<String> {
    doubts(
        links::in_text(text)
            .filter_map(|host| Some(format!("A link leads to {host}, {}.", host.doubt()?))),
    )
}

/// Each is said once.
fn doubts(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for doubt in all {
        if told.len() >= DOUBTS_MAX {
            break;
        }
        if !told.contains(&doubt) {
            told.push(doubt);
        }
    }
    told
}

/// What looks like an address of mail: as it may be told.
fn address(text: &str) -> Option<String> {
    let (local, host) = text.trim_matches('.').rsplit_once('@')?;
    let is_plain = |letter: char| letter.is_alphanumeric() || ".-_+".contains(letter);
    let is_address = !local.is_empty() && local.len() <= 64 && local.chars().all(is_plain);
    let host = Host::of(host).filter(|host| is_address && host.is_name())?;
    Some(format!("{local}@{host}"))
}
