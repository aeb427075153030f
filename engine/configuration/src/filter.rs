//! `[filter]`: an external mail filter for messages of unauthenticated clients, and the action if
//! it does not answer.

use alloc::format;
use alloc::string::String;
use core::fmt;

use machine::Micros;

use super::document::{Section, UncheckedSection};
use super::error::ConfigurationError;
use super::keys::keys;
use super::relay::HostAndPort;
use super::users::{PASSWORD_BYTES_MAX, credential};
use super::values::{Span, Value};

const TIMEOUT: Micros = Micros::from_secs(5);
const TIMEOUT_MIN: Micros = Micros::from_secs(1);
/// The longest timeout. By RFC 5321 section 4.5.3.2.6, clients wait for ten minutes, but some wait
/// for a shorter time. DNS lookups may have used a part of that time.
const TIMEOUT_MAX: Micros = Micros::from_secs(60);

keys! {
    KEYS, described, "[filter]", [],
    "An external mail filter that speaks the protocol of rspamd. Without this section there is no \
    filter.\n\n\
    The filter is asked about each message of an external client of up to 512 KiB, after the whole \
    message has arrived and unless DMARC rejects it. The request is `POST /checkv2`. It contains \
    the message as it came, the address of the client, the name in its EHLO command, the sender, \
    and the address of the account of each recipient.\n\n\
    A message that the filter rejects is rejected with the text of the filter (`550 5.7.1`). A \
    soft reject and a greylisting are a deferral (`451 4.7.1`). A message to which the filter \
    would add a header, or whose subject it would rewrite, is filed into Junk. The field \
    `X-Barepost-Reason:` then has its score and the main reasons. The message itself is not \
    changed.\n\n\
    A filter that does not answer in time, or not as rspamd does, is away: `when_away` applies, \
    the console reports it once, and the filter is not asked for a minute. Each core asks about 16 \
    messages at a time. The memory for their copies is as large as the memory for message bodies \
    on their way to the disk, at least 2 MiB. For messages beyond that the filter counts as \
    away.";
    "url" {
        form: "string",
        default: "none, the key is required",
        range: "`http://`, then the name or address of a host, a colon and a port",
        example: r#""http://10.0.0.5:11333""#,
        meaning: "Where the filter listens. It is asked without TLS, so use a network of your own.",
    }
    "password" {
        form: "string",
        default: "no password is sent",
        range: format!("1 to {PASSWORD_BYTES_MAX} bytes without control characters"),
        example: r#""q1""#,
        meaning: "The password that the filter requires.",
    }
    "timeout" {
        form: "duration",
        default: format!("`\"{}s\"`", TIMEOUT.as_secs()),
        range: format!("`\"{}s\"` to `\"{}s\"`", TIMEOUT_MIN.as_secs(), TIMEOUT_MAX.as_secs()),
        example: r#""5s""#,
        meaning: "The time for which a message waits for an answer.",
    }
    "when_away" {
        form: "string",
        default: "`\"accept\"`",
        range: "`\"accept\"`, `\"junk\"` or `\"defer\"`",
        example: r#""accept""#,
        meaning: "What happens to messages while the filter is away. They are accepted as if there \
            were no filter, filed into Junk, or deferred (`451 4.7.1`).",
    }
}

/// The settings of a filter that is asked about messages.
#[derive(Clone, PartialEq, Eq)]
pub struct FilterConfig {
    /// The host and port of the filter.
    pub place: HostAndPort,
    /// The password that the filter requires.
    pub password: Option<String>,
    /// The time limit for its answer, from 1 to 60 seconds.
    pub timeout: Micros,
    /// The action for messages if the filter does not answer.
    pub when_away: WhenAway,
}

/// The action for messages if the filter does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenAway {
    /// The messages are accepted as if there were no filter.
    #[default]
    Accept,
    /// The messages are filed into Junk.
    Junk,
    /// The messages are deferred.
    Defer,
}

/// The URL of a filter.
struct Url(HostAndPort);

impl fmt::Debug for FilterConfig {
    /// Leaves out the password, so that no log contains it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FilterConfig { place, timeout, when_away, .. } = self;
        let mut out = out.debug_struct("Filter");
        out.field("place", place)
            .field("timeout", timeout)
            .field("when_away", when_away)
            .finish_non_exhaustive()
    }
}

impl Value for Url {
    const FORM: &'static str = "where the filter listens, such as \"http://10.0.0.5:11333\"";

    fn parse(text: &str) -> Result<Url, &'static str> {
        if text.starts_with("https:") {
            return Err("a filter is contacted without TLS only");
        }
        let place =
            text.strip_prefix("http://").ok_or("the address does not start with http://")?;
        Ok(Url(HostAndPort::parse(place.strip_suffix('/').unwrap_or(place))?))
    }
}

impl Value for WhenAway {
    const FORM: &'static str = "\"accept\", \"junk\" or \"defer\"";

    fn parse(text: &str) -> Result<WhenAway, &'static str> {
        match text {
            "accept" => Ok(WhenAway::Accept),
            "junk" => Ok(WhenAway::Junk),
            "defer" => Ok(WhenAway::Defer),
            _ => Err("this is not a valid action"),
        }
    }
}

pub(super) fn filter(table: UncheckedSection<'_, '_>) -> Result<FilterConfig, ConfigurationError> {
    let section = &table.section(KEYS)?;
    let Url(place) = section.required("url", Url::FORM)?.parsed()?;
    Ok(FilterConfig {
        place,
        password: section
            .optional("password")
            .map(|item| credential(&item, "password"))
            .transpose()?,
        timeout: timeout(section)?,
        when_away: section
            .optional("when_away")
            .map(|item| item.parsed())
            .transpose()?
            .unwrap_or_default(),
    })
}

fn timeout(section: &Section<'_, '_>) -> Result<Micros, ConfigurationError> {
    let Some(item) = section.optional("timeout") else { return Ok(TIMEOUT) };
    let Span(timeout) = item.parsed()?;
    if !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&timeout) {
        return Err(item.error("the time is out of range", "a time from \"1s\" to \"60s\""));
    }
    Ok(timeout)
}
