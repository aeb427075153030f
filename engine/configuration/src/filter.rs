//! `[filter]`: an external mail filter for messages of unauthenticated clients, and what happens if
//! it does not answer.

use alloc::string::String;
use core::fmt;

use machine::Micros;

use super::document::Section;
use super::error::ConfigurationError;
use super::relay::Place;
use super::users::sayable;
use super::values::{Span, Value};

const TIMEOUT: Micros = Micros::from_secs(5);
const TIMEOUT_MIN: Micros = Micros::from_secs(1);
/// Clients wait for ten minutes (RFC 5321 section 4.5.3.2.6), and impatient ones for less. DNS
/// lookups may have used a part of it.
const TIMEOUT_MAX: Micros = Micros::from_secs(60);

/// A filter that is asked about messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Filter {
    /// Its host and port.
    pub place: Place,
    /// The password that it requires.
    pub password: Option<String>,
    /// Its time limit, from 1 to 60 seconds.
    pub timeout: Micros,
    /// What happens to messages if it does not answer.
    pub when_away: WhenAway,
}

/// What happens to messages if the filter does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenAway {
    /// They are accepted as if there were no filter.
    #[default]
    Accept,
    /// They are filed into Junk.
    Junk,
    /// They are deferred.
    Defer,
}

/// The URL of a filter.
struct Url(Place);

impl fmt::Debug for Filter {
    /// Leaves out the password, so that no log contains it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Filter { place, timeout, when_away, .. } = self;
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
            return Err("filters are asked in the clear alone");
        }
        let place = text.strip_prefix("http://").ok_or("this does not begin with http://")?;
        Ok(Url(Place::parse(place.strip_suffix('/').unwrap_or(place))?))
    }
}

impl Value for WhenAway {
    const FORM: &'static str = "\"accept\", \"junk\" or \"defer\"";

    fn parse(text: &str) -> Result<WhenAway, &'static str> {
        match text {
            "accept" => Ok(WhenAway::Accept),
            "junk" => Ok(WhenAway::Junk),
            "defer" => Ok(WhenAway::Defer),
            _ => Err("nothing of this name can be done"),
        }
    }
}

pub(super) fn filter(section: &Section<'_, '_>) -> Result<Filter, ConfigurationError> {
    section.refuse_unknown(&["url", "password", "timeout", "when_away"])?;
    let Url(place) = section.required("url", Url::FORM)?.parsed()?;
    Ok(Filter {
        place,
        password: section
            .optional("password")
            .map(|item| sayable(&item, "password"))
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
        return Err(
            item.error("no letter waits so long, or so short", "a time from \"1s\" to \"60s\"")
        );
    }
    Ok(timeout)
}
