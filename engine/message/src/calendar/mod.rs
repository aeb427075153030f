//! Calendars that invite to events, cancel them, or answer invitations: the parts of them that a
//! reader needs to see.
//!
//! Invariants:
//! - Reading never fails. Lines that are not understood are left out.
//! - A calendar has at most [`EVENTS_MAX`] events, with at most [`EVENT_CHARS_MAX`] characters in
//!   each text. All texts are on one line, without characters that hide others or change their
//!   order.
//! - The work is linear in the bytes.
//!
//! Implements: RFC 5545, the components `VEVENT` and `VTIMEZONE`; RFC 5546 section 1.4 (methods).

mod line;
mod time;
mod zone;

use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;

use crate::header::HeaderMailbox;
use line::ContentLine;
use time::ZONE_CHARS_MAX;
pub use time::{EventTime, Repetition, RepetitionUnit};
use zone::{CalendarZone, ObservanceFields};

/// The maximum number of events that are read.
pub const EVENTS_MAX: usize = 10;

/// The maximum number of characters of a text of an event.
pub const EVENT_CHARS_MAX: usize = 300;

/// The maximum number of zones that are read.
const ZONES_MAX: usize = 10;

/// A calendar.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Calendar {
    /// The purpose of the calendar.
    pub method: CalendarMethod,
    /// The events.
    pub events: Vec<CalendarEvent>,
    /// Whether the calendar has more events, or may have.
    pub has_more: bool,
    zones: Vec<CalendarZone>,
}

/// The purpose of a calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CalendarMethod {
    /// It has events, and asks for nothing.
    #[default]
    Publish,
    /// It invites.
    Request,
    /// It answers an invitation.
    Reply,
    /// It cancels events.
    Cancel,
    /// It proposes another time.
    Counter,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CalendarEvent {
    /// The name of the event.
    pub summary: String,
    /// The place of the event.
    pub location: String,
    /// The person that invites.
    pub organizer: HeaderMailbox,
    /// The first person that is invited. In an answer it is the person that answers.
    pub attendee: HeaderMailbox,
    /// The answer of that person.
    pub participation: Option<Participation>,
    /// When it begins.
    pub start: Option<EventTime>,
    /// When it ends. If this is a day, it is the first day after the event.
    pub end: Option<EventTime>,
    /// How it repeats.
    pub repetition: Option<Repetition>,
    /// Whether it is cancelled.
    pub is_cancelled: bool,
}

/// The answer to an invitation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Participation {
    /// The person will come.
    Accepted,
    /// The person may come.
    Tentative,
    /// The person will not come.
    Declined,
    /// Another person will come.
    Delegated,
}

impl Calendar {
    /// Reads a calendar, or the beginning of one. `charset`: the charset that its part declares.
    /// The result is `None` if the calendar has no event.
    pub fn read(bytes: &[u8], charset: Option<&str>) -> Option<Calendar> {
        let text = line::unfolded(bytes, charset);
        let mut reader = CalendarReader::default();
        text.lines().filter_map(ContentLine::read).for_each(|line| reader.line_arrived(&line));
        reader.event_ended();
        Some(reader.calendar).filter(|calendar| !calendar.events.is_empty())
    }

    /// The time in UTC of a local time in a zone that the calendar defines. `None`: the calendar
    /// does not define the zone, or defines it by rules that are not read.
    pub fn utc(&self, local: UnixTime, zone: &str) -> Option<UnixTime> {
        self.zones.iter().find(|known| known.name == zone)?.utc(local)
    }
}

/// The component that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Within {
    #[default]
    Nothing,
    Calendar,
    Event,
    Zone,
    Observance,
}

/// Reads a calendar line by line.
#[derive(Debug, Default)]
struct CalendarReader {
    calendar: Calendar,
    within: Within,
    /// The number of open components inside that component. They are not read.
    ignored: usize,
    event: CalendarEvent,
    /// The seconds that the event takes.
    duration: Option<u64>,
    zone: CalendarZone,
    observance: ObservanceFields,
}

impl CalendarReader {
    fn line_arrived(&mut self, line: &ContentLine<'_>) {
        if line.is("BEGIN") {
            self.component_began(line.value);
        } else if line.is("END") {
            self.component_ended();
        } else if self.ignored == 0 {
            match self.within {
                Within::Nothing => {}
                Within::Calendar => self.line_of_calendar_arrived(line),
                Within::Event => self.line_of_event_arrived(line),
                Within::Zone if line.is("TZID") => self.zone.name = line.text(ZONE_CHARS_MAX),
                Within::Zone => {}
                Within::Observance => self.observance.line_arrived(line),
            }
        }
    }

    fn component_began(&mut self, name: &str) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let inner = match self.within {
            _ if self.ignored > 0 => None,
            Within::Nothing if is("VCALENDAR") => Some(Within::Calendar),
            Within::Calendar if is("VEVENT") => Some(Within::Event),
            Within::Calendar if is("VTIMEZONE") => Some(Within::Zone),
            Within::Zone if is("STANDARD") || is("DAYLIGHT") => Some(Within::Observance),
            _ => None,
        };
        match inner {
            Some(inner) => self.within = inner,
            None => self.ignored += 1,
        }
    }

    fn component_ended(&mut self) {
        if self.ignored > 0 {
            self.ignored -= 1;
            return;
        }
        self.within = match self.within {
            Within::Nothing | Within::Calendar => Within::Nothing,
            Within::Event => {
                self.event_ended();
                Within::Calendar
            }
            Within::Zone => {
                let zone = core::mem::take(&mut self.zone);
                if self.calendar.zones.len() < ZONES_MAX {
                    self.calendar.zones.push(zone);
                }
                Within::Calendar
            }
            Within::Observance => {
                self.zone.observance_ended(core::mem::take(&mut self.observance));
                Within::Zone
            }
        };
    }

    fn line_of_calendar_arrived(&mut self, line: &ContentLine<'_>) {
        if line.is("METHOD") {
            self.calendar.method = match line.value.to_ascii_uppercase().as_str() {
                "REQUEST" | "ADD" => CalendarMethod::Request,
                "REPLY" => CalendarMethod::Reply,
                "CANCEL" => CalendarMethod::Cancel,
                "COUNTER" => CalendarMethod::Counter,
                _ => CalendarMethod::Publish,
            };
        }
    }

    fn line_of_event_arrived(&mut self, line: &ContentLine<'_>) {
        let event = &mut self.event;
        if line.is("SUMMARY") {
            event.summary = line.text(EVENT_CHARS_MAX);
        } else if line.is("LOCATION") {
            event.location = line.text(EVENT_CHARS_MAX);
        } else if line.is("ORGANIZER") {
            event.organizer = line.person(EVENT_CHARS_MAX);
        } else if line.is("ATTENDEE") && event.attendee == HeaderMailbox::default() {
            event.attendee = line.person(EVENT_CHARS_MAX);
            let answer = line.parameter("PARTSTAT").unwrap_or_default().to_ascii_uppercase();
            event.participation = match &*answer {
                "ACCEPTED" => Some(Participation::Accepted),
                "TENTATIVE" => Some(Participation::Tentative),
                "DECLINED" => Some(Participation::Declined),
                "DELEGATED" => Some(Participation::Delegated),
                _ => None,
            };
        } else if line.is("DTSTART") {
            event.start = EventTime::of(line);
        } else if line.is("DTEND") {
            event.end = EventTime::of(line);
        } else if line.is("DURATION") {
            self.duration = time::duration(line.value);
        } else if line.is("RRULE") {
            event.repetition = Repetition::read(line.value);
        } else if line.is("STATUS") {
            event.is_cancelled = line.value.eq_ignore_ascii_case("CANCELLED");
        }
    }

    /// The event has ended, or the calendar has ended within the event.
    fn event_ended(&mut self) {
        let mut event = core::mem::take(&mut self.event);
        let duration = self.duration.take();
        if event == CalendarEvent::default() {
            return;
        }
        if let (Some(start), None, Some(duration)) = (&event.start, &event.end, duration) {
            event.end = Some(start.after(duration));
        }
        if self.calendar.events.len() < EVENTS_MAX {
            self.calendar.events.push(event);
        } else {
            self.calendar.has_more = true;
        }
    }
}
