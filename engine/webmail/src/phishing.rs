//! Phishing warnings: links that name one host and lead to another, host names that mix scripts,
//! and sender names that look like other addresses.
//!
//! The HTML of a message is shown in a frame without scripts, so the page cannot show link targets
//! in the frame. The page shows the warnings as text next to the message.
//!
//! Invariants:
//! - A warning quotes only hosts and addresses. A host has alphanumeric characters, dots and
//!   hyphens, and a local part also `_` and `+`. No other text of the message can become a part of
//!   a warning.
//! - A message has at most [`WARNINGS_MAX`] warnings, and the work is linear in its text.
//!
//! Implements: UTS 39 sections 4 (only for Latin characters) and 5, RFC 3492, RFC 3986 section 3.2,
//! RFC 5890.

mod hosts;
mod links;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::header::HeaderMailbox;

use hosts::LinkHost;

/// The maximum number of warnings of one message.
pub(crate) const WARNINGS_MAX: usize = 10;

/// Warnings about the sender of a message.
pub(crate) fn of_sender(sender: &HeaderMailbox) -> Vec<String> {
    let mut warnings = Vec::new();
    let named = sender
        .name
        .split(|character: char| character.is_whitespace() || "<>()[]\"'“”,;:".contains(character));
    let other =
        named.filter_map(address).find(|named| !named.eq_ignore_ascii_case(&sender.address));
    if let (Some(other), Some(own)) = (other, address(&sender.address)) {
        warnings.push(format!("The sender’s name shows {other}, but the message is from {own}."));
    }
    let host = sender.address.rsplit_once('@').and_then(|(_, host)| LinkHost::of(host));
    if let Some((host, warning)) =
        host.and_then(|host| host.warning().map(|warning| (host, warning)))
    {
        warnings.push(format!("The sender’s address is at {host}, {warning}."));
    }
    warnings
}

/// Warnings about the links of an HTML part.
pub(crate) fn of_html(html: &str) -> Vec<String> {
    warnings(links::in_html(html).filter_map(|link| link.warning()))
}

/// Warnings about the addresses in a plain text. The text itself shows their targets.
pub(crate) fn of_text(text: &str) -> Vec<String> {
    warnings(
        links::in_text(text)
            .filter_map(|host| Some(format!("A link leads to {host}, {}.", host.warning()?))),
    )
}

/// The first warnings up to the limit, without duplicates.
fn warnings(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::new();
    for warning in all {
        if unique.len() >= WARNINGS_MAX {
            break;
        }
        if !unique.contains(&warning) {
            unique.push(warning);
        }
    }
    unique
}

/// The form in which a warning quotes a mail address. `None` if `text` does not look like an
/// address.
fn address(text: &str) -> Option<String> {
    let (local, host) = text.trim_matches('.').rsplit_once('@')?;
    let is_plain = |character: char| character.is_alphanumeric() || ".-_+".contains(character);
    let is_address = !local.is_empty() && local.len() <= 64 && local.chars().all(is_plain);
    let host = LinkHost::of(host).filter(|host| is_address && host.is_name())?;
    Some(format!("{local}@{host}"))
}
