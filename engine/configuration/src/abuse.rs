//! `[abuse]`: checks and limits for unauthenticated external clients.

use alloc::vec::Vec;

use machine::Micros;
use mail::StrangerLimits;

use super::document::Section;
use super::error::ConfigurationError;
use super::values::{HostName, Span};
use super::{LISTS_MAX, parsed_once};

const GREETING_DELAY: Micros = Micros::from_secs(1);
/// Clients wait for 5 minutes (RFC 5321 section 4.5.3.2.1), and bulk senders for less.
const GREETING_DELAY_MAX: Micros = Micros::from_secs(20);
/// A retry within a day is recognized.
const GREYLIST_MIN: Micros = Micros::from_secs(1);
const GREYLIST_MAX: Micros = Micros::from_secs(6 * 3_600);
/// The most trusted ARC domains.
const SEALERS_MAX: usize = 64;
/// The longest name of a DNS list, in bytes: an IPv6 address precedes it (RFC 5782 §2.4).
const LIST_BYTES_MAX: usize = 253 - 64;

/// Checks and limits for external clients. The default has only rate limits and the greeting delay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Abuse {
    /// DNS blocklists. Mail from a listed address is rejected.
    pub dnsbl: Vec<HostName>,
    /// DNS blocklists. Mail from a listed address is filed into Junk.
    pub dnsbl_junk: Vec<HostName>,
    /// DNS allowlists. For a listed address the blocklists do not count.
    pub dnswl: Vec<HostName>,
    /// Domains that we trust for ARC results, including their subdomains.
    pub trusted_arc: Vec<HostName>,
    /// The greeting delay, in which an early talker is detected. At most [`GREETING_DELAY_MAX`].
    pub greeting_delay: Micros,
    /// The greylisting delay for unknown senders. `None`: no greylisting.
    pub greylist: Option<Micros>,
    /// The rate limits of an address. Those of a network are higher.
    pub limits: StrangerLimits,
}

impl Default for Abuse {
    fn default() -> Abuse {
        Abuse {
            dnsbl: Vec::new(),
            dnsbl_junk: Vec::new(),
            dnswl: Vec::new(),
            trusted_arc: Vec::new(),
            greeting_delay: GREETING_DELAY,
            greylist: None,
            limits: StrangerLimits::default(),
        }
    }
}

pub(super) fn abuse(section: &Section<'_, '_>) -> Result<Abuse, ConfigurationError> {
    section.refuse_unknown(&[
        "dnsbl",
        "dnsbl_junk",
        "dnswl",
        "trusted_arc",
        "greeting_delay",
        "greylist",
        "connections",
        "client_connections",
        "connections_a_minute",
        "messages_a_minute",
        "recipients_a_minute",
        "unknown_recipients_an_hour",
    ])?;
    Ok(Abuse {
        dnsbl: lists(section, "dnsbl")?,
        dnsbl_junk: lists(section, "dnsbl_junk")?,
        dnswl: lists(section, "dnswl")?,
        trusted_arc: trusted_arc(section)?,
        greeting_delay: greeting_delay(section)?,
        greylist: greylist(section)?,
        limits: limits(section)?,
    })
}

fn greylist(section: &Section<'_, '_>) -> Result<Option<Micros>, ConfigurationError> {
    let Some(item) = section.optional("greylist") else { return Ok(None) };
    let Span(delay) = item.parsed()?;
    if !(GREYLIST_MIN..=GREYLIST_MAX).contains(&delay) {
        return Err(item.error("nobody comes again then", "a time from \"1s\" to \"6h\""));
    }
    Ok(Some(delay))
}

fn greeting_delay(section: &Section<'_, '_>) -> Result<Micros, ConfigurationError> {
    let Some(item) = section.optional("greeting_delay") else { return Ok(GREETING_DELAY) };
    let Span(delay) = item.parsed()?;
    if delay > GREETING_DELAY_MAX {
        return Err(item.error(
            "clients do not wait so long",
            format_args!("at most {} s", GREETING_DELAY_MAX.as_secs()),
        ));
    }
    Ok(delay)
}

fn limits(section: &Section<'_, '_>) -> Result<StrangerLimits, ConfigurationError> {
    let count = |key, usual| section.optional(key).map_or(Ok(usual), |item| item.count());
    let usual = StrangerLimits::default();
    Ok(StrangerLimits {
        connections: count("connections", usual.connections)?,
        client_connections: count("client_connections", usual.client_connections)?,
        arrivals: count("connections_a_minute", usual.arrivals)?,
        messages: count("messages_a_minute", usual.messages)?,
        recipients: count("recipients_a_minute", usual.recipients)?,
        guesses: count("unknown_recipients_an_hour", usual.guesses)?,
    })
}

fn trusted_arc(section: &Section<'_, '_>) -> Result<Vec<HostName>, ConfigurationError> {
    let Some(item) = section.optional("trusted_arc") else { return Ok(Vec::new()) };
    parsed_once(
        &item.list(SEALERS_MAX, "a list of domain names, such as [\"lists.example.org\"]")?,
        "a domain",
    )
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
