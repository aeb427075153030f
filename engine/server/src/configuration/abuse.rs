//! `[abuse]`: what strangers are refused for, or held in suspicion.

use alloc::vec::Vec;

use mail::StrangerLimits;

use super::document::Section;
use super::error::ConfigurationError;
use super::values::HostName;
use super::{LISTS_MAX, parsed_once};

/// Bytes of the longest name of a list: an address of IPv6 stands before it (RFC 5782 §2.4).
const LIST_BYTES_MAX: usize = 253 - 64;

/// What is held against strangers. The default: nothing but that they do too much.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Abuse {
    /// The lists whose addresses no mail is taken from.
    pub dnsbl: Vec<HostName>,
    /// Those whose addresses' mail goes to Junk.
    pub dnsbl_junk: Vec<HostName>,
    /// Those whose addresses none of the others counts for.
    pub dnswl: Vec<HostName>,
    /// How much an address may do; a network may do more.
    pub limits: StrangerLimits,
}

pub(super) fn abuse(section: &Section<'_, '_>) -> Result<Abuse, ConfigurationError> {
    section.refuse_unknown(&[
        "dnsbl",
        "dnsbl_junk",
        "dnswl",
        "connections",
        "connections_a_minute",
        "messages_a_minute",
        "recipients_a_minute",
        "unknown_recipients_an_hour",
    ])?;
    Ok(Abuse {
        dnsbl: lists(section, "dnsbl")?,
        dnsbl_junk: lists(section, "dnsbl_junk")?,
        dnswl: lists(section, "dnswl")?,
        limits: limits(section)?,
    })
}

fn limits(section: &Section<'_, '_>) -> Result<StrangerLimits, ConfigurationError> {
    let count = |key, usual| section.optional(key).map_or(Ok(usual), |item| item.count());
    let usual = StrangerLimits::default();
    Ok(StrangerLimits {
        connections: count("connections", usual.connections)?,
        arrivals: count("connections_a_minute", usual.arrivals)?,
        messages: count("messages_a_minute", usual.messages)?,
        recipients: count("recipients_a_minute", usual.recipients)?,
        guesses: count("unknown_recipients_an_hour", usual.guesses)?,
    })
}

fn lists(section: &Section<'_, '_>, key: &str) -> Result<Vec<HostName>, ConfigurationError> {
    let Some(item) = section.optional(key) else { return Ok(Vec::new()) };
    let items = item.list(LISTS_MAX, "a list of domain names, such as [\"zen.spamhaus.org\"]")?;
    let lists: Vec<HostName> = parsed_once(&items, "a list")?;
    match items.iter().zip(&lists).find(|(_, list)| list.as_str().len() > LIST_BYTES_MAX) {
        Some((item, _)) => Err(item.error(
            "no address of IPv6 has room before this name",
            format_args!("a name of at most {LIST_BYTES_MAX} characters"),
        )),
        None => Ok(lists),
    }
}
