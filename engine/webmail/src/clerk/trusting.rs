//! Senders whose letters load what they want from elsewhere without their reader being asked each time.
//!
//! They are a note of the account: their addresses, a line each, the latest last. A letter says itself whose it is, so whoever knows whom a reader trusts can write one that
//! loads pictures, and sees that it is read; nothing else comes of it, and that is what its reader is told.
//!
//! Invariant: the note is never longer than a note may be: who is trusted longest makes room.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use store::{AccountId, AccountInfo, NOTE_BYTES_MAX, NoteChange, Refusal};

use super::{Desk, Done, Step, why};
use crate::answer;
use crate::sessions::Said;

/// The note's key.
const KEY: &[u8] = b"pictures";

/// The longest address of mail (RFC 5321 section 4.5.3.1.3).
const ADDRESS_BYTES_MAX: usize = 254;

/// Whether a sender is trusted from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// He is.
    Begin(String),
    /// He is not.
    End(String),
}

/// A change of it under way.
#[derive(Debug)]
pub(super) struct Trusting {
    trust: Trust,
    then: String,
    is_asked: bool,
    refused: Option<Refusal>,
}

/// Whether letters of this sender load what they want.
pub(crate) fn is_trusted(known: Option<&AccountInfo<'_>>, address: &str) -> bool {
    let note = known.and_then(|known| known.note(KEY)).unwrap_or_default();
    !address.is_empty() && lines(note).any(|line| line.eq_ignore_ascii_case(address.as_bytes()))
}

fn lines(note: &[u8]) -> impl Iterator<Item = &[u8]> {
    note.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

impl Trusting {
    pub(super) fn new(trust: Trust, then: String) -> Trusting {
        Trusting { trust, then, is_asked: false, refused: None }
    }

    pub(super) fn ask(&mut self, account: AccountId, under_way: &mut usize, desk: &mut impl Desk) -> Step {
        if self.is_asked {
            return Step::Asked;
        }
        let note = desk.store().account(account).and_then(|known| known.note(KEY)).unwrap_or_default();
        let Some(change) = self.trust.change(note) else { return Step::Asked };
        let continuation = desk.continuation();
        match desk.store_mut().change_notes(account, alloc::vec![change], continuation) {
            Ok(()) => {
                self.is_asked = true;
                *under_way += 1;
            }
            Err(Refusal::Busy) => return Step::Busy,
            Err(refusal) => self.refused(refusal),
        }
        Step::Asked
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.is_asked = true;
        // What is not there any more is not to be taken away.
        self.refused = Some(refusal).filter(|refusal| *refusal != Refusal::NoSuchNote);
    }

    pub(super) fn done(&self) -> Done {
        match self.refused {
            Some(refusal) => Done::SentOn(self.then.clone(), Said::wrong(why(refusal))),
            None => Done::with(answer::elsewhere(&self.then)),
        }
    }
}

impl Trust {
    /// What becomes of the note. `None`: it stays.
    pub(crate) fn change(&self, note: &[u8]) -> Option<NoteChange> {
        let (Trust::Begin(address) | Trust::End(address)) = self;
        let is_address = (1..=ADDRESS_BYTES_MAX).contains(&address.len()) && !address.contains(['\n', '\r']);
        let others: Vec<&[u8]> = lines(note).filter(|line| !line.eq_ignore_ascii_case(address.as_bytes())).collect();
        let is_new = matches!(self, Trust::Begin(_));
        if !is_address || !is_new && others.len() == lines(note).count() {
            return None;
        }
        let mut room = NOTE_BYTES_MAX - if is_new { address.len() + 1 } else { 0 };
        let fits = |line: &&&[u8]| room.checked_sub(line.len() + 1).inspect(|left| room = *left).is_some();
        let mut kept: Vec<&[u8]> = others.iter().rev().take_while(fits).copied().collect();
        kept.reverse();
        kept.extend(is_new.then_some(address.as_bytes()));
        let value = kept.join(&b'\n');
        Some(if value.is_empty() {
            NoteChange::Remove(Box::from(KEY))
        } else {
            NoteChange::Put(Box::from(KEY), value.into())
        })
    }
}
