//! `[abuse]`: checks and limits for unauthenticated external clients.

use alloc::format;
use alloc::vec::Vec;

use machine::Micros;
use mail::{ClientLimits, NETWORK_SHARE};

use super::document::{Section, UncheckedSection};
use super::error::ConfigurationError;
use super::keys::keys;
use super::values::{HostName, Span};
use super::{LISTS_MAX, parsed_once};

const GREETING_DELAY: Micros = Micros::from_secs(1);
/// The longest greeting delay. By RFC 5321 section 4.5.3.2.1, clients wait for 5 minutes, but bulk
/// senders wait for a shorter time.
const GREETING_DELAY_MAX: Micros = Micros::from_secs(20);
/// The limits of the greylisting delay. The upper limit is low enough that greylisting still
/// recognizes a retry, which it does for a day.
const GREYLIST_MIN: Micros = Micros::from_secs(1);
const GREYLIST_MAX: Micros = Micros::from_secs(6 * 3_600);
/// The maximum number of trusted ARC domains.
const SEALERS_MAX: usize = 64;
/// The longest name of a DNS list, in bytes. The limit leaves space for an IPv6 address before the
/// name (RFC 5782 §2.4).
const LIST_BYTES_MAX: usize = 253 - 64;

keys! {
    KEYS, described, "[abuse]", [],
    format!(
        "Checks and limits for external clients: those that are in none of this machine's own \
        networks, whose address is not private or link-local, and that `unthrottled_from` in \
        `[access]` does not name.\n\n\
        If the machine knows a name server, it checks each message that a client outside of local \
        networks brings to port 25 with SPF, DKIM, DMARC and ARC, also one that `unthrottled_from` \
        names. The results are in the field \
        `Authentication-Results:`. A message that fails DMARC is rejected or filed into Junk, as \
        the domain of its author asks. The field `X-Barepost-Reason:` says why a message is in \
        Junk. If name servers do not answer, DMARC rejects nothing. ARC seals change nothing of \
        this, unless `trusted_arc` names their domain.\n\n\
        DNS lists (`dnsbl`, `dnsbl_junk`, `dnswl`) learn which addresses send mail to this server. \
        Some lists answer only to registered users, or not to public name servers. A list that \
        does not answer within five seconds does not count, and is not asked again for a minute. \
        Each network has a share of the lookups that may wait at a time. A client whose network \
        exceeds its share is not looked up; it is asked to try again later (`451 4.7.0`).\n\n\
        The numbers from `connections` on are limits for one address. One IPv6 /64 counts as one \
        address. A network (an IPv4 /24 or an IPv6 /48) has {NETWORK_SHARE} times each limit."
    );
    "dnsbl" {
        form: "list of domain names",
        default: "no lists",
        range: format!("up to {LISTS_MAX} names of at most {LIST_BYTES_MAX} characters"),
        example: r#"["zen.spamhaus.org"]"#,
        meaning: "DNS blocklists. Mail from a listed address is rejected (`554 5.7.1`) with the \
            text of the list. Mail to `postmaster` and `abuse` is accepted all the same.",
    }
    "dnsbl_junk" {
        form: "list of domain names",
        default: "no lists",
        range: format!("up to {LISTS_MAX} names of at most {LIST_BYTES_MAX} characters"),
        example: r#"["bl.spamcop.net"]"#,
        meaning: "DNS blocklists. Mail from a listed address is filed into Junk.",
    }
    "dnswl" {
        form: "list of domain names",
        default: "no lists",
        range: format!("up to {LISTS_MAX} names of at most {LIST_BYTES_MAX} characters"),
        example: r#"["list.dnswl.org"]"#,
        meaning: "DNS allowlists. For an address on one of them the blocklists do not count.",
    }
    "trusted_arc" {
        form: "list of domain names",
        default: "no domains",
        range: format!("up to {SEALERS_MAX} names, none twice"),
        example: r#"["lists.example.org"]"#,
        meaning: "Trusted ARC domains: their ARC results, and those of their subdomains, are \
            accepted. A message that one of them sealed with the result `dmarc=pass` is not \
            rejected or filed into Junk because it fails DMARC now. Mailing lists are the usual \
            case.",
    }
    "greeting_delay" {
        form: "duration",
        default: format!("`\"{}s\"`", GREETING_DELAY.as_secs()),
        range: format!("`\"0s\"` (no delay) to `\"{}s\"`", GREETING_DELAY_MAX.as_secs()),
        example: r#""1s""#,
        meaning: "The time for which an external client waits for the greeting of port 25. A \
            client that speaks before the greeting is rejected (`554`). So is a client that sends \
            a command before a reply that it has to wait for.",
    }
    "greylist" {
        form: "duration",
        default: "no greylisting",
        range: format!(
            "`\"{}s\"` to `\"{}h\"`",
            GREYLIST_MIN.as_secs(),
            GREYLIST_MAX.as_secs() / 3_600
        ),
        example: r#""5m""#,
        meaning: "The delay of greylisting. The first message of a sender to a recipient is \
            deferred (`450`) for this time. A sender is an envelope address together with a \
            network (/24 or /64), or with a domain for which SPF passes. If the message comes \
            again within a day, further mail from that network or domain is accepted at once, \
            until none has come for 35 days. Mail to `postmaster` and `abuse`, and from an address \
            on a list of `dnswl`, is never deferred. This is kept in memory, so after a restart everything \
            is deferred once more.",
    }
    "connections" {
        form: "integer",
        default: ClientLimits::default().connections,
        range: format!("1 to {}", u16::MAX),
        example: "100",
        meaning: "Concurrent connections to port 25 from one address, on each core.",
    }
    "client_connections" {
        form: "integer",
        default: ClientLimits::default().client_connections,
        range: format!("1 to {}", u16::MAX),
        example: "400",
        meaning: "Concurrent connections from one address to all other services together, on each \
            core. More are refused. It holds for every client that `unthrottled_from` does not \
            name, also for local ones. When connections run short, the addresses with the most \
            lose idle ones first.",
    }
    "connections_a_minute" {
        form: "integer",
        default: ClientLimits::default().arrivals,
        range: format!("1 to {}", u16::MAX),
        example: "200",
        meaning: "New connections a minute to port 25 from one address, on all cores together. \
            Further ones are closed with `421`.",
    }
    "messages_a_minute" {
        form: "integer",
        default: ClientLimits::default().messages,
        range: format!("1 to {}", u16::MAX),
        example: "600",
        meaning: "Messages a minute from one address, on all cores together. Further ones are \
            deferred (`450`).",
    }
    "recipients_a_minute" {
        form: "integer",
        default: ClientLimits::default().recipients,
        range: format!("1 to {}", u16::MAX),
        example: "2000",
        meaning: "Recipients a minute from one address, on all cores together. Further ones are \
            deferred (`450`).",
    }
    "unknown_recipients_an_hour" {
        form: "integer",
        default: ClientLimits::default().guesses,
        range: format!("1 to {}", u16::MAX),
        example: "50",
        meaning: "Recipients that do not exist, an hour and from one address, on all cores \
            together. After that the client no longer learns which recipients exist, and is \
            disconnected (`421`).",
    }
}

/// Checks and limits for external clients. By default only rate limits and the greeting delay are
/// on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Abuse {
    /// DNS blocklists. Mail from a listed address is rejected.
    pub dnsbl: Vec<HostName>,
    /// DNS blocklists. Mail from a listed address is filed into Junk.
    pub dnsbl_junk: Vec<HostName>,
    /// DNS allowlists. For a listed address the blocklists are ignored.
    pub dnswl: Vec<HostName>,
    /// Trusted ARC domains, including their subdomains.
    pub trusted_arc: Vec<HostName>,
    /// The greeting delay, in which a client that sends too early is detected. At most
    /// [`GREETING_DELAY_MAX`].
    pub greeting_delay: Micros,
    /// The greylisting delay for unknown senders. `None`: no greylisting.
    pub greylist: Option<Micros>,
    /// The rate limits of an address. The limits of a network are higher.
    pub limits: ClientLimits,
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
            limits: ClientLimits::default(),
        }
    }
}

pub(super) fn abuse(table: UncheckedSection<'_, '_>) -> Result<Abuse, ConfigurationError> {
    let section = &table.section(KEYS)?;
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
        return Err(item
            .error("no client would try again within that time", "a time from \"1s\" to \"6h\""));
    }
    Ok(Some(delay))
}

fn greeting_delay(section: &Section<'_, '_>) -> Result<Micros, ConfigurationError> {
    let Some(item) = section.optional("greeting_delay") else { return Ok(GREETING_DELAY) };
    let Span(delay) = item.parsed()?;
    if delay > GREETING_DELAY_MAX {
        return Err(item.error(
            "clients disconnect before that time",
            format_args!("at most {} s", GREETING_DELAY_MAX.as_secs()),
        ));
    }
    Ok(delay)
}

fn limits(section: &Section<'_, '_>) -> Result<ClientLimits, ConfigurationError> {
    let count = |key, usual| section.optional(key).map_or(Ok(usual), |item| item.count());
    let usual = ClientLimits::default();
    Ok(ClientLimits {
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
            "the name is too long to look up an IPv6 address below it",
            format_args!("a name of at most {LIST_BYTES_MAX} characters"),
        )),
        None => Ok(lists),
    }
}
