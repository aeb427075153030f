//! Signatures under letters of our own users: of the domain in whose name a letter is written, if it is one of ours, one with each key (DKIM, crate `dkim`).
//!
//! A letter is signed when it is accepted, or when it is written in the webmail: it is hashed as it goes into the store, and what signs it stands above it, appended last ([`store::Head`]). So it is read once, whatever becomes of it: brought to
//! somebody here, or sent to others as often as it takes.
//!
//! Invariants:
//! - What is signed is what is stored. No more of a letter is in memory than its header.
//! - Who signs computes one signature, and then lets others go first: it takes up to some milliseconds, and cannot be cut. A core computes one a turn: of sessions, which wait at the gate for it, and of clerks of
//!   the webmail and couriers who seal what they send on (`queue::sealing`), who wait here, in turns.
//! - Of each letter [`LEAST_BYTES`] of the header are kept, whatever others keep. What it needs
//!   more comes from a pool of [`POOL_BYTES`] for all letters of a core, of which one address gets
//!   a third (`budget`). A letter that has no room there is refused for now, rather than going
//!   unsigned.
//!
//! A letter is not signed where it is in nobody's name or that of several domains, where its header is longer than signatures look at, or where what would sign it has no room above it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use budget::{Charge, MemoryBudget};
use dkim::{Algorithm, Message, Reading, SigningKey};
use dns::Name;
use machine::UnixTime;
use store::{Head, Refusal};
use tasks::FrameId;

use crate::author::{Author, Authors};
use crate::directory::Directory;

/// Bytes of a header that are always kept: as much as most letters have.
pub(crate) const LEAST_BYTES: u32 = 16 * 1024;
/// Bytes for what letters of a core need above that, together.
pub(crate) const POOL_BYTES: usize = 2 << 20;

/// With what a core signs, and what that takes now.
pub(crate) struct Signer {
    /// In the order in which their signatures stand above a letter.
    keys: Arc<[SigningKey]>,
    /// What is kept of letters until they are signed.
    pub(crate) kept: MemoryBudget,
    /// Those who have a letter to be signed, each once. Some may have gone meanwhile.
    waiting: VecDeque<Waiting>,
    /// Whether a session had the last turn.
    is_their_turn: bool,
}

/// Who waits for his turn to sign, and is no session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// A clerk of the webmail.
    Clerk(FrameId),
    /// A courier, who seals.
    Courier(FrameId),
}

impl Signer {
    /// `key` is random.
    pub(crate) fn new(keys: Arc<[SigningKey]>, key: [u8; 16]) -> Signer {
        let kept = MemoryBudget::new(POOL_BYTES, key);
        Signer { keys, kept, waiting: VecDeque::new(), is_their_turn: false }
    }

    /// Somebody has a letter to be signed.
    pub(crate) fn enter(&mut self, who: Waiting) {
        self.waiting.push_back(who);
    }

    /// Whose turn it is of those who wait here, if it is not that of a session that wants it, too.
    pub(crate) fn next_waiting(&mut self, is_session_there: bool) -> Option<Waiting> {
        let next = self.waiting.front().copied().filter(|_| self.is_their_turn || !is_session_there);
        self.is_their_turn = next.is_none();
        self.waiting.drain(..usize::from(next.is_some()));
        next
    }

    /// The key with which chains are sealed: of RSA, since not everybody who verifies them knows another (RFC 8617 section 4.1.3).
    pub(crate) fn sealing_key(&self) -> Option<&SigningKey> {
        self.keys.iter().find(|key| key.algorithm() == Algorithm::RsaSha256)
    }

    /// Whether there is anything to sign with.
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Begins to sign a letter that comes from `address`, or at least to find out who has written
    /// it.
    pub(crate) fn begin(&self, address: IpAddr) -> Box<Signing> {
        let (stage, charge) = (Stage::Arriving(Reading::to_sign()), Charge::new(LEAST_BYTES));
        Box::new(Signing { stage, signatures: Vec::new(), address, charge })
    }
}

/// A letter that is being signed.
pub(crate) struct Signing {
    stage: Stage,
    /// Those that are made, a field each.
    signatures: Vec<String>,
    address: IpAddr,
    /// What is kept of it, in [`Signer::kept`].
    charge: Charge,
}

enum Stage {
    Arriving(Reading),
    /// All of it is there, and this domain signs it, next with the key of this number.
    Arrived(Box<Message>, Name, usize),
    /// There is nothing more to be signed.
    Over,
}

impl Signing {
    /// The next octets of the letter, as they are stored.
    pub(crate) fn arrived(&mut self, octets: &[u8]) {
        if let Stage::Arriving(reading) = &mut self.stage {
            reading.arrived(octets);
        }
    }

    /// Counts what is kept of it.
    ///
    /// Errors: it is too much, for now.
    pub(crate) fn count(&mut self, signer: &mut Signer) -> Result<(), Refusal> {
        let bytes = match &self.stage {
            Stage::Arriving(reading) => reading.footprint(),
            Stage::Arrived(message, ..) => message.footprint(),
            Stage::Over => 0,
        };
        signer.kept.charge(&mut self.charge, self.address, bytes).map_err(|_| Refusal::Busy)
    }

    /// There is no more of the message. Returns in whose name it is, if that can be told.
    pub(crate) fn ended(&mut self, directory: &Directory) -> Option<Authors> {
        let Stage::Arriving(reading) = core::mem::replace(&mut self.stage, Stage::Over) else { return None };
        let message = reading.ended();
        let authors = Authors::of(message.header(), message.is_cut());
        if let Author::Of(domain) = Author::of(message.header(), message.is_cut())
            && directory.has_domain(&domain)
        {
            self.stage = Stage::Arrived(Box::new(message), domain, 0);
        }
        authors
    }

    /// It goes without a signature: it is in another's name than that of the account that sends it.
    pub(crate) fn leave_unsigned(&mut self) {
        self.stage = Stage::Over;
    }

    /// Whether there is something to compute.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Arrived(..))
    }

    /// Computes one signature.
    pub(crate) fn sign(&mut self, signer: &Signer, now: UnixTime) {
        let Stage::Arrived(message, domain, next) = &mut self.stage else { return };
        self.signatures.extend(signer.keys.get(*next).and_then(|key| message.sign(key, domain, now).ok()));
        *next += 1;
        if *next >= signer.keys.len() {
            self.stage = Stage::Over;
        }
    }

    /// It is not needed any more.
    pub(crate) fn forget(&mut self, signer: &mut Signer) {
        self.stage = Stage::Over;
        signer.kept.release(&mut self.charge, self.address);
    }

    /// What stands above the letter: `first`, and as many signatures as there is room for.
    pub(crate) fn head(&self, first: &[u8]) -> Vec<u8> {
        let mut head = first.to_vec();
        for signature in &self.signatures {
            if head.len() + signature.len() <= Head::OCTETS_MAX - Head::UNIT {
                head.extend_from_slice(signature.as_bytes());
            }
        }
        fill_up(&mut head);
        head
    }
}

/// Adds as much white space to the last line as makes the number of octets one that a head can have. Behind a signature it means nothing (RFC 6376 sections 3.4.2 and 3.5).
fn fill_up(head: &mut Vec<u8>) {
    let spaces = head.len().next_multiple_of(Head::UNIT) - head.len();
    let end = head.len().saturating_sub(b"\r\n".len());
    head.splice(end..end, core::iter::repeat_n(b' ', spaces));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_and_others_sign_in_turns_and_nobody_waits_for_who_is_not_there() {
        let mut signer = Signer::new(Arc::from(Vec::new()), [7; 16]);
        let frames = (0..5).map(|number| FrameId::new(number, 0)).enumerate();
        let all = frames.map(|(number, frame)| match number % 2 {
            0 => Waiting::Clerk(frame),
            _ => Waiting::Courier(frame),
        });
        let all: Vec<Waiting> = all.collect();
        all.iter().for_each(|waiting| signer.enter(*waiting));
        assert_eq!(signer.next_waiting(false), Some(all[0]));
        let turns: Vec<_> = (0..7).map(|_| signer.next_waiting(true)).collect();
        let other = |number: usize| Some(all[number]);
        assert_eq!(turns, [None, other(1), None, other(2), None, other(3), None]);
        assert_eq!(signer.next_waiting(false), other(4));
        assert_eq!([signer.next_waiting(false), signer.next_waiting(true)], [None, None]);
    }
}
