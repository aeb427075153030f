//! The links in HTML or text: the hosts that their texts name, and the hosts of their targets.
//!
//! HTML is scanned only as far as links need it, without a full parser as in a browser. A link that
//! the scan misses gets no warning, and is not changed.

use alloc::format;
use alloc::string::String;

use super::hosts::LinkHost;
use crate::prose::next_address;

/// The number of bytes of a link's text that are examined.
const TEXT_BYTES_MAX: usize = 1000;

/// A link to a host.
pub(super) struct Hyperlink {
    target: LinkHost,
    /// The host that the link's text names.
    named: Option<LinkHost>,
    /// A host name in the user part of the address, before the `@`.
    pretended: Option<LinkHost>,
}

impl Hyperlink {
    /// The warning, if the link's target may differ from the target that a reader expects.
    pub(super) fn warning(&self) -> Option<String> {
        let Hyperlink { target, named, pretended } = self;
        if let Some(warning) = target.warning() {
            return Some(format!("A link leads to {target}, {warning}."));
        }
        let seems =
            named.as_ref().or(pretended.as_ref()).filter(|seems| !seems.is_related_to(target))?;
        Some(format!("A link that says {seems} leads to {target}."))
    }
}

/// The links in HTML.
pub(super) fn in_html(html: &str) -> impl Iterator<Item = Hyperlink> {
    let mut rest = html;
    core::iter::from_fn(move || {
        loop {
            let (attributes, inside) = next_anchor(rest)?;
            rest = inside;
            let Some(link) = href(attributes).and_then(|href| link(&plain(href), inside)) else {
                continue;
            };
            return Some(link);
        }
    })
}

/// The hosts of the links in a text.
pub(super) fn in_text(text: &str) -> impl Iterator<Item = LinkHost> {
    let mut rest = text;
    core::iter::from_fn(move || {
        loop {
            let (_, address, after) = next_address(rest)?;
            rest = after;
            let Some((_, host)) = authority(address) else { continue };
            return Some(host);
        }
    })
}

/// The attributes of the next `a` tag, and the HTML after the tag.
fn next_anchor(html: &str) -> Option<(&str, &str)> {
    let mut rest = html;
    loop {
        rest = rest.get(rest.find('<')? + 1..)?;
        let mut characters = rest.chars();
        let is_anchor = matches!(characters.next(), Some('a' | 'A'));
        if is_anchor
            && characters
                .next()
                .is_some_and(|character| character.is_ascii_whitespace() || character == '/')
        {
            return rest.split_once('>');
        }
    }
}

/// The value of `href` among attributes.
fn href(attributes: &str) -> Option<&str> {
    let mut from = 0;
    loop {
        let at = from + attributes.get(from..)?.find(['h', 'H'])?;
        let (name, tail) = attributes.get(at..)?.split_at_checked(4).unwrap_or_default();
        let value = tail.trim_start().strip_prefix('=').map(str::trim_start);
        let begins = attributes
            .get(..at)?
            .chars()
            .next_back()
            .is_none_or(|character| !character.is_alphanumeric() && character != '-');
        if let Some(value) = value.filter(|_| begins && name.eq_ignore_ascii_case("href")) {
            let quote =
                value.chars().next().filter(|character| *character == '"' || *character == '\'');
            return match quote {
                Some(quote) => value.get(1..)?.split(quote).next(),
                None => value.split(|character: char| character.is_ascii_whitespace()).next(),
            };
        }
        from = at + 1;
    }
}

/// The link to `address`. `inside`: the HTML after the link's tag.
fn link(address: &str, inside: &str) -> Option<Hyperlink> {
    let (pretended, target) = authority(address)?;
    let text = inside.get(..inside.floor_char_boundary(TEXT_BYTES_MAX))?;
    let end = text.find("</a").or_else(|| text.find("</A")).unwrap_or(text.len());
    let named = named(&plain(&without_tags(text.get(..end)?)));
    Some(Hyperlink { target, named, pretended })
}

/// The user part of an address, if it looks like a host, and the host of the address.
fn authority(address: &str) -> Option<(Option<LinkHost>, LinkHost)> {
    // Browsers drop control characters and treat a backslash as a slash.
    let kept = address.trim().chars().filter(|character| !character.is_control());
    let address: String =
        kept.map(|character| if character == '\\' { '/' } else { character }).collect();
    let scheme = ["https://", "http://", "//"].into_iter().find(|scheme| {
        address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    let authority = address.get(scheme.len()..)?.split(['/', '?', '#']).next()?;
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let host = LinkHost::of(host.split(':').next()?)?;
    Some((user.split(':').next().and_then(LinkHost::of).filter(LinkHost::is_name), host))
}

/// The first host that a text names: in a URL, in a word that begins with `www.`, or as the only
/// word of the text.
fn named(text: &str) -> Option<LinkHost> {
    let is_alone = text.split_whitespace().nth(1).is_none();
    text.split_whitespace().take(50).find_map(|word| {
        let word =
            word.trim_matches(|character: char| !character.is_alphanumeric() && character != '/');
        if word.contains('@') {
            return None;
        }
        match authority(word) {
            Some((_, host)) => Some(host),
            None if is_alone || word.starts_with("www.") => {
                LinkHost::of(word.split(['/', '?', '#', ':']).next()?)
            }
            None => None,
        }
        .filter(LinkHost::is_name)
    })
}

fn without_tags(html: &str) -> String {
    let mut pieces = html.split('<');
    let mut out = String::from(pieces.next().unwrap_or_default());
    pieces.filter_map(|piece| piece.split_once('>')).for_each(|(_, text)| out.push_str(text));
    out
}

/// The longest character reference, in bytes, without its `&` and with its `;`.
const REFERENCE_BYTES_MAX: usize = 9;

/// Decodes character references in a text (HTML section 13.2.5.72): numbers, and the names that may
/// occur in addresses.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let end = after.bytes().take(REFERENCE_BYTES_MAX).position(|byte| byte == b';');
        let reference = end.and_then(|end| Some((after.get(..end)?, after.get(end + 1..)?)));
        let (name, tail) = reference.unwrap_or(("", after));
        let character = match name.strip_prefix('#') {
            Some(number) => match number.strip_prefix(['x', 'X']) {
                Some(number) => u32::from_str_radix(number, 16).ok(),
                None => number.parse().ok(),
            }
            .and_then(char::from_u32),
            None => [("amp", '&'), ("period", '.'), ("sol", '/'), ("colon", ':'), ("nbsp", ' ')]
                .into_iter()
                .find_map(|(known, character)| (known == name).then_some(character)),
        };
        match character {
            Some(character) => out.push(character),
            None => out.push('&'),
        }
        rest = if character.is_some() { tail } else { after };
    }
    out.push_str(rest);
    out
}
