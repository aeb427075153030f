//! The end of a delivery: its last chunks and records are gathered, and a flush makes them durable.
//! Or the delivery is given up.
//!
//! Invariant: space for all recipients is allocated before any recipient gets the message.

use crate::chunk::{self, pages_for};
use crate::delivery::summarizing::SummaryProgress;
use crate::delivery::{Deliveries, Expect, StepProgress};
use crate::format3;
use crate::format4::QueuedRecord;
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page};
use crate::messages::MessageEntry;
use crate::outcome::{Outcome, Refusal};
use crate::parts::StoreParts;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::record;
use crate::segments::Want;
use crate::superblock::Format;
use crate::types::{MailboxId, Marks, Recipient, Uid};
use crate::writing::allocate;
use alloc::vec::Vec;
use tasks::FrameId;

/// The most bytes of the records of one recipient: `delivered`, `queued`, a note of the arrival,
/// and as many `chunks` records as the largest message needs. Not included: 4 bytes for each chunk
/// before the last.
const RECORDS_BYTES: usize = 224;
/// The bytes of the record of one more note of an arrival.
const ARRIVAL_BYTES: usize = 60;

impl Deliveries {
    /// Gathers the delivery that has been ready for longest, if that is possible now. Returns
    /// whether it was possible. If so, the caller may try the next delivery.
    pub(crate) fn gather_next(&mut self, reads_to_come: usize, parts: &mut StoreParts) -> bool {
        let Some(id) = self.ready.front().copied() else { return false };
        if self.gather_delivery(id, reads_to_come, parts) == StepProgress::Later {
            return false;
        }
        self.ready.pop_front();
        true
    }

    /// Gathers the last chunk and the record of each recipient.
    pub(super) fn gather_delivery(
        &mut self,
        id: FrameId,
        reads_to_come: usize,
        parts: &mut StoreParts,
    ) -> StepProgress {
        let Some(delivery) =
            self.table.get(id).filter(|delivery| delivery.expect == Expect::Gathered)
        else {
            return StepProgress::Done;
        };
        if let Some(refusal) = delivery.failed {
            self.refuse_delivery(id, refusal, parts);
            return StepProgress::Done;
        }
        if self.fit_staging(id, &mut parts.pool) == StepProgress::Later {
            return StepProgress::Later;
        }
        let summarizer = self.summarizer;
        self.known(id).last_chunk_completed(&summarizer);
        match self.allocate_last(id, parts) {
            Ok(StepProgress::Done) => {}
            Ok(StepProgress::Later) => return StepProgress::Later,
            Err(refusal) => {
                self.refuse_delivery(id, refusal, parts);
                return StepProgress::Done;
            }
        }
        let to_leave = self.pages_to_leave(reads_to_come);
        loop {
            match self.gather_recipient(id, to_leave, parts) {
                Some(StepProgress::Done) => {}
                Some(StepProgress::Later) => return StepProgress::Later,
                None => break,
            }
        }
        self.known(id).expect = Expect::Flushed;
        StepProgress::Done
    }

    /// Moves the octets into a buffer with exactly the pages that they need.
    fn fit_staging(&mut self, id: FrameId, pool: &mut Pool) -> StepProgress {
        let delivery = self.known(id);
        let pages = pages_for(delivery.length);
        if delivery
            .staging
            .as_ref()
            .is_some_and(|staging| staging.len() == pages as usize * PAGE_BYTES)
        {
            return StepProgress::Done;
        }
        let Some(fitting) = pool.take(pages) else { return StepProgress::Later };
        if let Some(old) = delivery.restage(fitting) {
            pool.give(old);
        }
        StepProgress::Done
    }

    /// Reserves quota for all recipients, and allocates the last chunk of each recipient. Both come
    /// before any recipient gets the message.
    pub(super) fn allocate_last(
        &mut self,
        id: FrameId,
        parts: &mut StoreParts,
    ) -> Result<StepProgress, Refusal> {
        let delivery = self.known(id);
        if !delivery.is_reserved {
            parts.indexes.reserve(&delivery.recipients, delivery.octets)?;
            delivery.is_reserved = true;
        }
        let pages = pages_for(delivery.length);
        delivery.last_pages_each = pages;
        let (from, to) = (delivery.last_pages.len(), delivery.recipients.len());
        for number in from..to {
            let Some(recipient) = self.known(id).recipients.get(number).copied() else {
                unreachable!("a recipient that a delivery has lost")
            };
            let Some(page) = allocate(parts, recipient.account.shard(), pages, Want::Delivery)
            else {
                if parts.role.awaits_segments() {
                    return Ok(StepProgress::Later);
                }
                parts.segments.delivery_refused();
                return Err(Refusal::DiskFull);
            };
            self.known(id).last_pages.push(page.0);
        }
        Ok(StepProgress::Done)
    }

    /// Gathers the chunk and the records of the next recipient. `None`: no recipient is left.
    fn gather_recipient(
        &mut self,
        id: FrameId,
        to_leave: usize,
        parts: &mut StoreParts,
    ) -> Option<StepProgress> {
        let delivery = self.known(id);
        let number = delivery.cursor;
        let recipient = *delivery.recipients.get(number)?;
        let Recipient {
            account,
            mailbox: MailboxId(mailbox),
            flags,
            keywords,
            entry: queued,
            once,
        } = recipient;
        let (Some(page), Some(guid)) =
            (delivery.last_pages.get(number), delivery.guids.get(number))
        else {
            unreachable!("a recipient without a page or a GUID")
        };
        let (page, guid) = (Page(*page), *guid);
        let is_last = number + 1 == delivery.recipients.len();
        let shard = account.shard();
        let notes = delivery.stands_for.len() * ARRIVAL_BYTES;
        if !parts.journals.has_room_for(shard, delivery.chunks as usize * 4 + RECORDS_BYTES + notes)
        {
            return Some(StepProgress::Later);
        }
        let copy = if is_last {
            None
        } else {
            parts.pool.take_for_copy(delivery.last_pages_each, to_leave)
        };
        if copy.is_none() && !is_last {
            return Some(StepProgress::Later);
        }
        let Some(mut buffer) = delivery.buffer_for_recipient(copy) else {
            unreachable!("a last chunk without octets")
        };
        let Some(known) = parts.indexes.of_mut(shard).mailbox_mut(account, mailbox) else {
            unreachable!("a built-in mailbox that is gone")
        };
        let (uid, modseq) = (known.next_uid(), known.next_modseq());
        let uid_validity = known.uid_validity();
        let (head, date) = (delivery.head, delivery.date);
        let last = chunk::LastChunkFields { uid, octets: delivery.octets, modseq, date, head };
        let header = chunk::ChunkHeader { uid_validity, ..delivery.header(recipient, Some(last)) };
        let check =
            chunk::emit(&mut buffer, &parts.superblock.key, page, &header, &delivery.summary);
        let mut first_page = page.0;
        if delivery.chunks > 0 {
            let recipients = delivery.recipients.len();
            let all =
                delivery.pages.iter().skip(number).step_by(recipients).copied().chain([page.0]);
            let pages: Vec<u32> = all.collect();
            record::put_chunks(parts.journals.gather(shard), guid, &pages);
            let Some(first) = pages.first() else { unreachable!("a message without a chunk") };
            first_page = *first;
        }
        let entry = MessageEntry::new(uid, delivery.octets, first_page, date, modseq, guid);
        let entry = entry.in_conversation(header.conversation).with_head(head);
        let format = parts.superblock.format;
        let marks = Marks { flags, keywords };
        let marks = if format == Format::Three { format3::join(marks, queued) } else { marks };
        let entry = entry.with_marks(marks);
        record::put_delivered(
            parts.journals.gather(shard),
            account,
            mailbox,
            uid_validity,
            &entry,
            check,
        );
        if let Some(entry) = queued.filter(|_| format == Format::Four) {
            let record = QueuedRecord { account, uid: Uid(uid), modseq, entry };
            record::put_queued(parts.journals.gather(shard), &record);
        }
        for origin in once.iter().chain(&delivery.stands_for) {
            record::put_note(
                parts.journals.gather(shard),
                account,
                &origin.key(),
                &guid.to_le_bytes(),
            );
        }
        parts.journals.wait(shard, Pending::Delivery(id));
        delivery.cursor += 1;
        delivery.groups += 1;
        self.write_for(id, page, buffer, parts);
        Some(StepProgress::Done)
    }

    /// Makes a delivery ready, after a flush has covered all of its chunks except the last.
    pub(crate) fn chunks_flushed(&mut self, id: FrameId) {
        let Some(delivery) = self.table.get_mut(id) else { return };
        if delivery.expect == Expect::ChunksFlushed {
            delivery.expect = Expect::Gathered;
            self.ready.push_back(id);
        }
    }

    /// Notes that a group with the records of one recipient is durable and applied. After the last
    /// recipient's group, the message is delivered.
    pub(crate) fn recipient_flushed(&mut self, id: FrameId, parts: &mut StoreParts) {
        let delivery = self.known(id);
        delivery.groups -= 1;
        if delivery.groups == 0 && delivery.expect == Expect::Flushed {
            let continuation = delivery.continuation;
            self.forget(id, parts);
            if let Some(continuation) = continuation {
                parts.wakes.wake(continuation, Outcome::Delivered);
            }
        }
    }

    /// Handles the end of a chunk's write. Returns true if the write failed and a group depends on
    /// it. Then the disk counts as failed.
    pub(crate) fn chunk_written(&mut self, id: FrameId, ok: bool, parts: &mut StoreParts) -> bool {
        let delivery = self.known(id);
        delivery.writes -= 1;
        if !ok {
            delivery.failed = Some(Refusal::WriteFailed);
        }
        let is_fatal = !ok && delivery.groups > 0;
        self.forget_if_written(id, parts);
        is_fatal
    }

    /// Clears the ready queue, because the disk has failed.
    pub(crate) fn clear_ready(&mut self) {
        self.ready.clear();
    }

    /// Ends all deliveries, because the store is read-only from now on.
    pub(crate) fn refuse_all(&mut self, parts: &mut StoreParts) {
        for slot in 0..self.table.capacity() {
            let Some(id) = self.table.id_at(slot) else { continue };
            self.refuse_delivery(id, Refusal::ReadOnly, parts);
        }
    }

    fn refuse_delivery(&mut self, id: FrameId, refusal: Refusal, parts: &mut StoreParts) {
        let continuation = self.known(id).continuation.take();
        self.give_up(id, parts);
        if let Some(continuation) = continuation {
            parts.wakes.refuse(continuation, refusal);
        }
    }

    /// Abandons the delivery. It stays in the table until its writes have ended.
    pub(super) fn give_up(&mut self, id: FrameId, parts: &mut StoreParts) {
        self.stop_waiting_for_buffer(id);
        self.known(id).expect = Expect::Abandoned;
        self.forget_if_written(id, parts);
    }

    fn forget_if_written(&mut self, id: FrameId, parts: &mut StoreParts) {
        if self.table.get(id).is_some_and(|one| one.expect == Expect::Abandoned && one.writes == 0)
        {
            self.forget(id, parts);
        }
    }

    /// Removes a delivery and unpins its pages.
    fn forget(&mut self, id: FrameId, parts: &mut StoreParts) {
        let Some(mut delivery) = self.table.remove(id) else {
            unreachable!("a delivery that has ended")
        };
        if delivery.is_reserved {
            parts.indexes.release(&delivery.recipients, delivery.octets);
        }
        for page in &delivery.pages {
            parts.segments.unpin(Page(*page), PIECE_PAGES);
        }
        for page in &delivery.last_pages {
            parts.segments.unpin(Page(*page), delivery.last_pages_each);
        }
        if let Some(staging) = delivery.staging.take() {
            parts.pool.give(staging);
        }
        delivery.summary_progress = SummaryProgress::default();
        self.idle.push(delivery);
        // Lets the operations that wait for buffers try again.
        parts.pool.note_room();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::CHUNKS_MAX;
    use crate::outbox::OutboxEntry;
    use crate::types::{AccountId, Guid, SentId};

    #[test]
    fn records_of_the_largest_message_fit_the_reserved_bytes() {
        let (mut out, account) = (Vec::new(), AccountId(1));
        record::put_chunks(&mut out, 1, &[0; CHUNKS_MAX as usize]);
        record::put_delivered(&mut out, account, 1, 1, &MessageEntry::new(1, 1, 1, 1, 1, 1), 1);
        let record =
            QueuedRecord { account, uid: Uid(1), modseq: 1, entry: OutboxEntry::submitted(0, 8) };
        record::put_queued(&mut out, &record);
        record::put_note(
            &mut out,
            account,
            &SentId::of(account, Guid(1)).key(),
            &1u64.to_le_bytes(),
        );
        let counted = (CHUNKS_MAX as usize - 1) * 4 + RECORDS_BYTES;
        assert!(
            (counted - 8..=counted).contains(&out.len()),
            "{} bytes, {counted} counted",
            out.len()
        );
        out.clear();
        record::put_note(
            &mut out,
            account,
            &SentId::of(account, Guid(1)).key(),
            &1u64.to_le_bytes(),
        );
        assert!(out.len() <= ARRIVAL_BYTES, "{} bytes of a note", out.len());
    }
}
