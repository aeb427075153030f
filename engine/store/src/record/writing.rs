//! Appending records to the gathered records of a group. Each function writes one kind.

use super::{
    ACCOUNT, CHUNKS, CHUNKS_IN_RECORD, DELIVERED, FILED, GONE, LIFE, MAILBOX, MARKED, MOVED, NOTE,
    PROGRESS, QUEUED, RANGE, REMOVED, SHARD,
};
use crate::block::RECORDS_MAX;
use crate::bytes::put_text;
use crate::format4::{ProgressRecord, QueuedRecord};
use crate::frame::FRAME_BYTES;
use crate::layout::Page;
use crate::messages::MessageEntry;
use crate::types::{AccountId, MarkChange, Marks, Place};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Appends one record: its kind, its length, and the bytes that `fields` appends.
fn put(out: &mut Vec<u8>, kind: u8, fields: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind, 0, 0]);
    let start = out.len();
    fields(out);
    let length = out.len() - start;
    assert!(length + FRAME_BYTES <= RECORDS_MAX, "a record larger than a block");
    let Some(place) = out.get_mut(start - 2..start) else {
        unreachable!("a record without its length")
    };
    place.copy_from_slice(&(length as u16).to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// The fields of an `account` record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccountTexts<'a> {
    pub(crate) id: AccountId,
    pub(crate) address: &'a str,
    pub(crate) aliases: &'a [Box<str>],
    pub(crate) password_hash: &'a str,
    pub(crate) verifier: &'a str,
    pub(crate) replaced: &'a str,
}

pub(crate) fn put_account(out: &mut Vec<u8>, account: AccountTexts<'_>) {
    put(out, ACCOUNT, |out| {
        put_u64(out, account.id.0);
        put_text(out, account.address);
        out.push(account.aliases.len() as u8);
        for alias in account.aliases {
            put_text(out, alias);
        }
        put_text(out, account.password_hash);
        put_text(out, account.verifier);
        put_text(out, account.replaced);
    });
}

pub(crate) fn put_mailbox(
    out: &mut Vec<u8>,
    account: AccountId,
    mailbox: u32,
    uid_validity: u32,
    (uid_next, highest_modseq): (u32, u64),
    name: &str,
) {
    put(out, MAILBOX, |out| {
        put_u64(out, account.0);
        put_u32(out, mailbox);
        put_u32(out, uid_validity);
        put_u32(out, uid_next);
        put_u64(out, highest_modseq);
        put_text(out, name);
    });
}

pub(crate) fn put_delivered(
    out: &mut Vec<u8>,
    account: AccountId,
    mailbox: u32,
    uid_validity: u32,
    entry: &MessageEntry,
    check: u64,
) {
    put(out, DELIVERED, |out| {
        put_u64(out, account.0);
        put_u32(out, mailbox);
        put_u32(out, uid_validity);
        out.extend_from_slice(&entry.to_bytes());
        put_u64(out, check);
    });
}

/// Appends as many `chunks` records as the pages need.
pub(crate) fn put_chunks(out: &mut Vec<u8>, guid: u64, pages: &[u32]) {
    for (part, number) in pages.chunks(CHUNKS_IN_RECORD).zip(0u32..) {
        put(out, CHUNKS, |out| {
            put_u64(out, guid);
            put_u32(out, number * CHUNKS_IN_RECORD as u32);
            part.iter().for_each(|page| put_u32(out, *page));
        });
    }
}

pub(crate) fn put_range(
    out: &mut Vec<u8>,
    account: AccountId,
    mailbox: u32,
    (first, last): (u32, u32),
    entries: impl Iterator<Item = MessageEntry>,
) {
    put(out, RANGE, |out| {
        put_u64(out, account.0);
        put_u32(out, mailbox);
        put_u32(out, first);
        put_u32(out, last);
        entries.for_each(|entry| out.extend_from_slice(&entry.to_bytes()));
    });
}

pub(crate) fn put_removed(
    out: &mut Vec<u8>,
    account: AccountId,
    mailbox: u32,
    modseq: u64,
    ranges: &[(u32, u32)],
) {
    put(out, REMOVED, |out| {
        put_u64(out, account.0);
        put_u32(out, mailbox);
        put_u64(out, modseq);
        for (first, last) in ranges {
            put_u32(out, *first);
            put_u32(out, *last);
        }
    });
}

pub(crate) fn put_marked(
    out: &mut Vec<u8>,
    account: AccountId,
    Place { mailbox, uid }: Place,
    modseq: u64,
    MarkChange { clear, set }: MarkChange,
) {
    put(out, MARKED, |out| {
        put_u64(out, account.0);
        put_u32(out, mailbox);
        put_u32(out, uid);
        put_u64(out, modseq);
        for Marks { flags, keywords } in [clear, set] {
            out.push(flags.0);
            out.extend_from_slice(&keywords.to_le_bytes());
        }
    });
}

/// A chunk of a message that moves to a new place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    pub(crate) account: AccountId,
    pub(crate) mailbox: u32,
    pub(crate) uid: u32,
    pub(crate) guid: u64,
    pub(crate) index: u32,
    pub(crate) from: Page,
    pub(crate) to: Page,
    pub(crate) pages: u32,
}

pub(crate) fn put_moved(out: &mut Vec<u8>, moved: &Move) {
    put(out, MOVED, |out| {
        put_u64(out, moved.account.0);
        put_u32(out, moved.mailbox);
        put_u32(out, moved.uid);
        put_u64(out, moved.guid);
        put_u32(out, moved.index);
        put_u32(out, moved.from.0);
        put_u32(out, moved.to.0);
    });
}

/// Appends the record of a fence. A life (the time from one opening of the disk to the next) begins
/// its part of a journal with a block that holds only this record. The next block names the hash of
/// this block. So blocks that an earlier life left after this place never fit.
pub(crate) fn put_life(out: &mut Vec<u8>, nonce: u64) {
    put(out, LIFE, |out| put_u64(out, nonce));
}

pub(crate) fn put_shard(out: &mut Vec<u8>, guid_next: u64) {
    put(out, SHARD, |out| put_u64(out, guid_next));
}

pub(crate) fn put_filed(
    out: &mut Vec<u8>,
    account: AccountId,
    (from, modseq): (Place, u64),
    (to, uid_validity): (u32, u32),
    entry: &MessageEntry,
) {
    put(out, FILED, |out| {
        put_u64(out, account.0);
        put_u32(out, from.mailbox);
        put_u32(out, from.uid);
        put_u64(out, modseq);
        put_u32(out, to);
        put_u32(out, uid_validity);
        out.extend_from_slice(&entry.to_bytes());
    });
}

/// Appends the record that `mailbox` will never exist again. The record also covers each mailbox
/// with a lower number that has no record.
pub(crate) fn put_gone(out: &mut Vec<u8>, account: AccountId, mailbox: u32) {
    put(out, GONE, |out| {
        put_u64(out, account.0);
        put_u32(out, mailbox);
    });
}

/// Appends the record of a note. An empty `value` removes the note.
pub(crate) fn put_note(out: &mut Vec<u8>, account: AccountId, key: &[u8], value: &[u8]) {
    put(out, NOTE, |out| {
        put_u64(out, account.0);
        out.push(key.len() as u8);
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    });
}

pub(crate) fn put_queued(out: &mut Vec<u8>, record: &QueuedRecord) {
    put(out, QUEUED, |out| record.emit(out));
}

pub(crate) fn put_progress(out: &mut Vec<u8>, record: &ProgressRecord) {
    put(out, PROGRESS, |out| record.emit(out));
}
