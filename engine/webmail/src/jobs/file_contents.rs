//! The contents of files about which a page says something: calendars, and containers of Outlook.
//! They are read while the message passes.
//!
//! Invariant: at most [`CALENDARS_MAX`] calendars of a message are read, one at a time. The reading
//! of a calendar stops after the piece of the message with which it reaches [`CALENDAR_BYTES_MAX`].
//! At most [`CONTAINERS_MAX`] containers are read. Only their names and texts are kept, and
//! [`TnefReader`] limits the size of both.

use alloc::string::String;
use alloc::vec::Vec;

use message::BodyDecoder;
use message::calendar::Calendar;
use message::structure::Part;
use message::tnef::{TnefFile, TnefReader};

/// The maximum number of calendars of a message that are read.
const CALENDARS_MAX: usize = 4;

/// The number of bytes after which no more of a calendar is read.
const CALENDAR_BYTES_MAX: usize = 128 * 1024;

/// The maximum number of containers of a message that are read.
const CONTAINERS_MAX: usize = 4;

/// The files of a message that were read.
#[derive(Debug, Default)]
pub(super) struct FileContents {
    calendars: Vec<Calendar>,
    /// The containers: the index of each part, and what is in it.
    containers: Vec<(usize, TnefReader)>,
    /// The file that is being read.
    open: Option<OpenContents>,
    /// The number of calendars that were read.
    calendar_count: usize,
}

/// A file that is being read.
#[derive(Debug)]
struct OpenContents {
    kind: ContentsKind,
    decoder: BodyDecoder,
    /// The bytes of a calendar so far.
    bytes: Vec<u8>,
    /// Whether the calendar has more bytes than are read.
    is_cut: bool,
}

#[derive(Debug)]
enum ContentsKind {
    /// A calendar, and its charset.
    Calendar(Option<String>),
    /// The last container.
    Container,
}

impl FileContents {
    /// The calendars, without repetitions: some programs add an invitation twice.
    pub(super) fn calendars(&self) -> &[Calendar] {
        &self.calendars
    }

    /// The files with content that are in containers: the index of the part, the index of the file,
    /// and the file.
    pub(super) fn inner_files(&self) -> impl Iterator<Item = (usize, usize, &TnefFile)> {
        self.containers.iter().flat_map(|(part, container)| {
            let files = container.files().iter().enumerate();
            files.filter(|(_, file)| file.bytes.is_some()).map(|(at, file)| (*part, at, file))
        })
    }

    /// The first container with a text, and the index of its part. If the text is long, only its
    /// beginning is kept, or nothing of it.
    pub(super) fn with_text(&self) -> Option<(usize, &TnefReader)> {
        let has_text =
            |container: &TnefReader| container.is_text_cut() || !container.text().trim().is_empty();
        let found = self.containers.iter().find(|(_, container)| has_text(container));
        found.map(|(part, container)| (*part, container))
    }

    /// The body of the last part begins. Returns whether its content is wanted.
    pub(super) fn body_began(&mut self, parts: &[Part]) -> bool {
        let Some(part) = parts.last() else { return false };
        let kind = match &*part.media_type {
            _ if part.is_enclosed(parts) => return false,
            "text/calendar" | "application/ics" if self.calendar_count < CALENDARS_MAX => {
                self.calendar_count += 1;
                ContentsKind::Calendar(part.charset.clone())
            }
            _ if is_container(part) && self.containers.len() < CONTAINERS_MAX => {
                self.containers.push((parts.len() - 1, TnefReader::default()));
                ContentsKind::Container
            }
            _ => return false,
        };
        let decoder = BodyDecoder::new(part.encoding);
        self.open = Some(OpenContents { kind, decoder, bytes: Vec::new(), is_cut: false });
        true
    }

    /// The next bytes of a wanted body. Returns whether a file is being read.
    pub(super) fn body_arrived(&mut self, bytes: &[u8]) -> bool {
        let Some(open) = &mut self.open else { return false };
        match &open.kind {
            ContentsKind::Calendar(_) if open.bytes.len() >= CALENDAR_BYTES_MAX => {
                open.is_cut = true;
            }
            ContentsKind::Calendar(_) => open.decoder.bytes_arrived(bytes, &mut open.bytes),
            ContentsKind::Container => {
                open.bytes.clear();
                open.decoder.bytes_arrived(bytes, &mut open.bytes);
                Self::bytes_of_container_arrived(&mut self.containers, &open.bytes);
            }
        }
        true
    }

    /// A wanted body has ended. Returns whether a file was being read.
    pub(super) fn body_ended(&mut self) -> bool {
        let Some(mut open) = self.open.take() else { return false };
        if let ContentsKind::Container = open.kind {
            open.bytes.clear();
        }
        open.decoder.body_ended(&mut open.bytes);
        match &open.kind {
            ContentsKind::Calendar(charset) => {
                let mut calendar = Calendar::read(&open.bytes, charset.as_deref());
                calendar.iter_mut().for_each(|calendar| calendar.has_more |= open.is_cut);
                let is_new = |calendar: &Calendar| !self.calendars.contains(calendar);
                self.calendars.extend(calendar.filter(is_new));
            }
            ContentsKind::Container => {
                Self::bytes_of_container_arrived(&mut self.containers, &open.bytes);
            }
        }
        true
    }

    fn bytes_of_container_arrived(containers: &mut [(usize, TnefReader)], decoded: &[u8]) {
        if let Some((_, container)) = containers.last_mut() {
            container.bytes_arrived(decoded, None, &mut Vec::new());
        }
    }
}

/// Whether the part is a container of Outlook.
fn is_container(part: &Part) -> bool {
    matches!(&*part.media_type, "application/ms-tnef" | "application/vnd.ms-tnef")
        || part.file_name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("winmail.dat"))
}
