//! Opens an entry: reads its recipients from its beginning.

use alloc::vec::Vec;

use accounts::entries::domain_of;
use message::RequiredForm;
use relay::envelope::{self, UnreadableEnvelope};
use sometimes::sometimes;

use super::attempt_context::AttemptCx;
use super::entry::{self, Entry, OpenedEntry, has_shown_header};
use super::forwarding::arrival;
use super::head::{self, EntryExtent, EntryHead};
use super::state::Queue;

/// Opens an entry of which `beginning` was read.
pub(super) fn open(
    beginning: &[u8],
    extent: EntryExtent,
    cx: &mut AttemptCx<'_, '_>,
) -> OpenedEntry {
    if entry::is_forwarding_entry(cx.record()) {
        return arrival(beginning, extent, cx);
    }
    let EntryHead { signatures, has_long_lines, envelope, message_at } =
        match head::read(beginning, extent) {
            Ok(head) => head,
            Err(UnreadableEnvelope::Partial) => {
                sometimes!(EntryHeadInParts);
                return OpenedEntry::Partial;
            }
            Err(UnreadableEnvelope::Malformed) => return OpenedEntry::Unreadable,
        };
    let message = beginning.get(message_at..).unwrap_or_default();
    if extent == EntryExtent::Beginning && !has_shown_header(message) {
        return OpenedEntry::Partial;
    }
    // The record of the entry may name a recipient that the envelope does not have.
    let store = &cx.parts.store.own.store;
    let mut head = Vec::new();
    // An envelope that was read can be written.
    let _ = envelope::write(&envelope, &mut head);
    let mark = |header: &[u8]| Queue::mark_of_message(&[&head, identity(header)].concat(), store);
    let Some(mut entry) = Entry::posted(cx.place.0, envelope, cx.record(), message, mark) else {
        return OpenedEntry::Unreadable;
    };
    if has_long_lines {
        entry.set_required_form(RequiredForm::ShortLines);
    }
    let domain = domain_of(entry.address(0));
    cx.queue.set_domain(cx.place, &domain, &cx.parts.store.own.store);
    OpenedEntry::Whole { entry, signatures, message_at: message_at as u32 }
}

/// The part of a header that all entries of a message share, and no other message of the account
/// has: the first field. For a submitted message this is the trace field, even after the message
/// was written anew. For a webmail message it is the date.
pub(super) fn identity(header: &[u8]) -> &[u8] {
    let mut ends = memchr::memmem::find_iter(header, b"\r\n").map(|end| end + 2);
    let end = ends.find(|end| !matches!(header.get(*end), Some(b' ' | b'\t')));
    header.get(..end.unwrap_or(header.len())).unwrap_or(header)
}

/// Whether `beginning` has the whole head of an entry, even if more of the message is wanted.
pub(super) fn has_head(beginning: &[u8], cx: &AttemptCx<'_, '_>) -> bool {
    !entry::is_forwarding_entry(cx.record())
        && head::read(beginning, EntryExtent::Beginning).is_ok()
}
