//! The contents of files about which a page says something: calendars. They are read while the
//! message passes.
//!
//! Invariant: of a message at most [`CALENDARS_MAX`] calendars are read, one at a time, each up to
//! [`CALENDAR_BYTES_MAX`] and the piece of the message that reaches it.

use alloc::string::String;
use alloc::vec::Vec;

use message::BodyDecoder;
use message::calendar::Calendar;
use message::structure::Part;

/// The maximum number of calendars of a message that are read.
const CALENDARS_MAX: usize = 4;

/// The number of bytes after which no more of a calendar is read.
const CALENDAR_BYTES_MAX: usize = 128 * 1024;

/// The files of a message that were read.
#[derive(Debug, Default)]
pub(super) struct FileContents {
    calendars: Vec<Calendar>,
    /// The file that is being read.
    open: Option<OpenCalendar>,
    /// The number of files that were read.
    count: usize,
}

/// A calendar that is being read.
#[derive(Debug)]
struct OpenCalendar {
    charset: Option<String>,
    decoder: BodyDecoder,
    bytes: Vec<u8>,
}

impl FileContents {
    /// The calendars, without repetitions: some programs add an invitation twice.
    pub(super) fn calendars(&self) -> &[Calendar] {
        &self.calendars
    }

    /// The body of the last part begins. Returns whether its content is wanted.
    pub(super) fn body_began(&mut self, parts: &[Part]) -> bool {
        let Some(part) = parts.last() else { return false };
        let is_calendar = matches!(&*part.media_type, "text/calendar" | "application/ics");
        if !is_calendar || part.is_enclosed(parts) || self.count >= CALENDARS_MAX {
            return false;
        }
        self.count += 1;
        self.open = Some(OpenCalendar {
            charset: part.charset.clone(),
            decoder: BodyDecoder::new(part.encoding),
            bytes: Vec::new(),
        });
        true
    }

    /// The next bytes of a wanted body. Returns whether a file is being read.
    pub(super) fn body_arrived(&mut self, bytes: &[u8]) -> bool {
        let Some(open) = &mut self.open else { return false };
        if open.bytes.len() < CALENDAR_BYTES_MAX {
            open.decoder.bytes_arrived(bytes, &mut open.bytes);
        }
        true
    }

    /// A wanted body has ended. Returns whether a file was being read.
    pub(super) fn body_ended(&mut self) -> bool {
        let Some(mut open) = self.open.take() else { return false };
        open.decoder.body_ended(&mut open.bytes);
        let calendar = Calendar::read(&open.bytes, open.charset.as_deref());
        let is_new = |calendar: &Calendar| !self.calendars.contains(calendar);
        self.calendars.extend(calendar.filter(is_new));
        true
    }
}
