//! The statement about an event: an invitation, a cancellation, or an answer.
//!
//! Times are in the reader's zone. A local time in an unknown zone is shown with the name of that
//! zone.
//!
//! Any sender can write an invitation in the name of another person. So the statement names the
//! message as its source. If the sender is not that person, it also names the sender.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use machine::UnixTime;
use message::calendar::{
    Calendar, CalendarEvent, CalendarMethod, EventTime, Participation, Repetition, RepetitionUnit,
};
use message::header::HeaderMailbox;

use crate::moments::Moment;
use crate::notice::KindNotice;
use crate::zone::{Zone, ZoneCache};

use super::people::typed;

const SECONDS_IN_DAY: u64 = 86_400;

/// The maximum number of different zones of the database that are used for the events of a message.
const ZONES_MAX: usize = 8;

/// The reader's zone, and the zones of the events on a page.
pub(super) struct Zones<'a> {
    reader: &'a Zone,
    known: ZoneCache,
    /// The zones of the current message.
    of_message: Vec<&'static str>,
}

impl Zones<'_> {
    pub(super) fn of(reader: &Zone) -> Zones<'_> {
        Zones { reader, known: ZoneCache::default(), of_message: Vec::new() }
    }

    pub(super) fn reader(&self) -> &Zone {
        self.reader
    }

    /// The events of another message follow.
    pub(super) fn message_begins(&mut self) {
        self.of_message.clear();
    }

    /// The zone with this name in the database. `None`: the message names too many zones.
    fn find(&mut self, name: &'static str) -> Option<Zone> {
        if !self.of_message.contains(&name) {
            if self.of_message.len() >= ZONES_MAX {
                return None;
            }
            self.of_message.push(name);
        }
        Some(self.known.find(name))
    }
}

/// A time of an event for the reader.
struct EventMoment {
    moment: Moment,
    /// The zone of the time. Empty: a whole day is meant.
    zone: String,
}

/// The statements about the events of a calendar in a message from this address.
pub(super) fn notices(calendar: &Calendar, from: &str, zones: &mut Zones<'_>) -> Vec<KindNotice> {
    let events = calendar.events.iter().map(|event| notice(event, calendar, from, zones));
    let mut notices: Vec<KindNotice> = events.collect();
    if calendar.has_more {
        notices.push(KindNotice::sentence("The calendar has more than is shown here."));
    }
    notices
}

fn notice(
    event: &CalendarEvent,
    calendar: &Calendar,
    from: &str,
    zones: &mut Zones<'_>,
) -> KindNotice {
    let words = match calendar.method {
        CalendarMethod::Cancel => "this event is canceled:",
        _ if event.is_cancelled => "this event is canceled:",
        CalendarMethod::Request => "you are invited to this event:",
        CalendarMethod::Reply => "an invitation to this event is answered:",
        CalendarMethod::Counter => "a change to this event is proposed:",
        CalendarMethod::Publish => "this event takes place:",
    };
    let is_answer = matches!(calendar.method, CalendarMethod::Reply | CalendarMethod::Counter);
    let answer = event.participation.filter(|_| is_answer).map(|answer| {
        let answer = match answer {
            Participation::Accepted => "accepted",
            Participation::Tentative => "accepted tentatively",
            Participation::Declined => "declined",
            Participation::Delegated => "delegated to another person",
        };
        format!("{}: {answer}", person(&event.attendee).unwrap_or("someone".into()))
    });
    let text = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let facts = [
        ("What", text(&event.summary)),
        ("When", when(event, calendar, zones)),
        ("Repeats", event.repetition.as_ref().map(|rule| repeats(rule, calendar, zones))),
        ("Where", text(&event.location)),
        ("Organizer", person(&event.organizer)),
        ("Answer", answer),
        match is_answer {
            true => ("Not sent by that person, but by", other_sender(&event.attendee, from)),
            false => ("Not sent by the organizer, but by", other_sender(&event.organizer, from)),
        },
    ];
    let facts = facts.into_iter().filter_map(|(name, text)| Some((name.to_string(), text?)));
    KindNotice { words: format!("According to this message, {words}"), facts: facts.collect() }
}

/// The sender of a message that speaks for `person`, if the sender has another address.
fn other_sender(person: &HeaderMailbox, from: &str) -> Option<String> {
    let is_other =
        *person != HeaderMailbox::default() && !person.address.eq_ignore_ascii_case(from);
    is_other.then(|| if from.is_empty() { "an unknown sender" } else { from }.to_string())
}

fn person(person: &HeaderMailbox) -> Option<String> {
    match (&*person.name, &*person.address) {
        ("", "") => None,
        (name, "") => Some(name.into()),
        _ => Some(typed(person)),
    }
}

/// When the event takes place: `Tue, 3 Nov 2026, 15:00 – 16:00 (Europe/Berlin)`.
fn when(event: &CalendarEvent, calendar: &Calendar, zones: &mut Zones<'_>) -> Option<String> {
    let start = event.start.as_ref()?;
    let begins = EventMoment::of(start, calendar, zones);
    let last = match (start, event.end.as_ref()) {
        (EventTime::Day(start), Some(EventTime::Day(end))) => {
            let last = end.seconds().saturating_sub(SECONDS_IN_DAY).max(start.seconds());
            Some(EventTime::Day(UnixTime::from_seconds(last)))
        }
        (EventTime::Day(_), _) | (_, Some(EventTime::Day(_))) => None,
        (_, end) => end.cloned(),
    };
    let ends = last.map(|last| EventMoment::of(&last, calendar, zones));
    let date = begins.moment.date_in_words();
    let same_day = ends.as_ref().is_some_and(|ends| ends.moment.date_in_words() == date);
    Some(match ends {
        Some(ends) if ends.zone != begins.zone => format!("{begins} – {ends}"),
        Some(ends) if begins.zone.is_empty() && !same_day => {
            format!("{date} – {ends}")
        }
        Some(ends) if begins.zone.is_empty() => ends.to_string(),
        Some(ends) if same_day => {
            let [from, to] = [&begins.moment, &ends.moment].map(Moment::time_of_day);
            let zone = &begins.zone;
            if from == to {
                begins.to_string()
            } else {
                format!("{date}, {from} – {to} ({zone})")
            }
        }
        Some(ends) => format!("{date}, {} – {ends}", begins.moment.time_of_day()),
        None => begins.to_string(),
    })
}

/// How often the event repeats: `every 2 weeks, 10 times`.
fn repeats(rule: &Repetition, calendar: &Calendar, zones: &mut Zones<'_>) -> String {
    let unit = match rule.unit {
        RepetitionUnit::Day => "day",
        RepetitionUnit::Week => "week",
        RepetitionUnit::Month => "month",
        RepetitionUnit::Year => "year",
    };
    let every = match rule.interval {
        1 => format!("every {unit}"),
        interval => format!("every {interval} {unit}s"),
    };
    let (every, in_all) = match rule.is_on_certain_days {
        true => (format!("on certain days, {every}"), " in all"),
        false => (every, ""),
    };
    match (rule.times, &rule.until) {
        (Some(times), _) => format!("{every}, {times} times{in_all}"),
        (None, Some(until)) => {
            let until = EventMoment::of(until, calendar, zones).moment;
            format!("{every} until {}", until.date_in_words())
        }
        (None, None) => every,
    }
}

impl EventMoment {
    fn of(time: &EventTime, calendar: &Calendar, zones: &mut Zones<'_>) -> EventMoment {
        let as_written = |local, zone: &str| EventMoment {
            moment: Moment::of(local, &Zone::UTC),
            zone: zone.to_string(),
        };
        let time = match time {
            EventTime::Day(day) => return as_written(*day, ""),
            EventTime::Utc(time) => *time,
            EventTime::Local { time, zone } if zone.is_empty() => {
                return as_written(*time, "local time");
            }
            EventTime::Local { time, zone } => match utc(*time, zone, calendar, zones) {
                Some(time) => time,
                None => return as_written(*time, zone),
            },
        };
        let zone = zones.reader.name().to_string();
        EventMoment { moment: Moment::of(time, zones.reader), zone }
    }
}

impl core::fmt::Display for EventMoment {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let date = self.moment.date_in_words();
        match &*self.zone {
            "" => write!(out, "{date} (all day)"),
            zone => write!(out, "{date}, {} ({zone})", self.moment.time_of_day()),
        }
    }
}

/// The time at which clocks in a zone show `local`. The calendar defines the zone, or else the
/// database. Some programs write a prefix before the name that the database has:
/// `/mozilla.org/20050126_1/Europe/Berlin`.
fn utc(
    local: UnixTime,
    zone: &str,
    calendar: &Calendar,
    zones: &mut Zones<'_>,
) -> Option<UnixTime> {
    if let Some(time) = calendar.utc(local, zone) {
        return Some(time);
    }
    let without_prefix =
        core::iter::successors(Some(zone), |name| name.split_once('/').map(|(_, rest)| rest));
    let mut names = without_prefix.filter(|name| *name == zone || name.contains('/'));
    let name = names.find_map(crate::zone::known_name)?;
    Some(zones.find(name)?.utc(local))
}
