//! Signatures under messages of our own users: of the domain of the message's author, if it is one
//! of ours, one with each key (DKIM, crate `dkim`).
//!
//! A message is signed when it is accepted, or when it is written in the webmail: it is hashed as
//! it goes into the store, and its signatures stand above it, appended last ([`store::Head`]). So
//! it is read once, also if it is then sent to other servers as often as it takes.
//!
//! Invariants:
//! - What is signed is what is stored. No more of a message is in memory than its header.
//! - A signature takes up to some milliseconds and cannot be cut, so it is a job (crate
//!   `compute`). What waits for it is a session, a request handler of the webmail, or a delivery
//!   attempt that seals a forwarded message (`outbound::sealing`).
//! - Of each message [`LEAST_BYTES`] of the header are kept, whatever others keep. What it needs
//!   more comes from a pool of [`POOL_BYTES`] for all messages of a core, of which one address gets
//!   a third (`budget`). A message that has no room there is refused for now, rather than going
//!   unsigned.
//!
//! A message is not signed if it has no author or authors of several domains, if its header is
//! longer than signatures look at, or if there is no room above it for the signatures.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod author;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use budget::{Charge, MemoryBudget};
use compute::{Compute, JobNumber, JobResult};
use dkim::{Algorithm, Message, Reading, SigningKey, UnsignedField};
use dns::Name;
use machine::UnixTime;
use store::{Head, Refusal};
use tasks::Continuation;

pub use author::{Author, Authors};

/// Bytes of a header that are always kept: as much as most letters have.
pub const LEAST_BYTES: u32 = 16 * 1024;
/// Bytes for what letters of a core need above that, together.
pub const POOL_BYTES: usize = 2 << 20;

/// With what a core signs, and what that takes now.
pub struct Signer {
    /// In the order in which their signatures stand above a letter.
    keys: Arc<[SigningKey]>,
    /// What is kept of letters until they are signed.
    kept: MemoryBudget,
}

impl Signer {
    /// `key` is random.
    pub fn new(keys: Arc<[SigningKey]>, key: [u8; 16]) -> Signer {
        Signer { keys, kept: MemoryBudget::new(POOL_BYTES, key) }
    }

    /// Bytes that are kept of messages until they are signed.
    pub fn kept_bytes(&self) -> usize {
        self.kept.held()
    }

    /// The key that seals ARC chains, and its number. It is an RSA key, since not all verifiers
    /// know another algorithm (RFC 8617 section 4.1.3).
    pub fn sealing_key(&self) -> Option<(usize, &SigningKey)> {
        self.keys.iter().enumerate().find(|(_, key)| key.algorithm() == Algorithm::RsaSha256)
    }

    /// Whether there is anything to sign with.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Begins to sign a letter that comes from `address`, or at least to find out who has written
    /// it.
    pub fn begin(&self, address: IpAddr) -> Box<Signing> {
        let (stage, charge) = (Stage::Arriving(Reading::to_sign()), Charge::new(LEAST_BYTES));
        Box::new(Signing { stage, signatures: Vec::new(), job: None, address, charge })
    }
}

/// A letter that is being signed.
pub struct Signing {
    stage: Stage,
    /// Those that are made, a field each.
    signatures: Vec<String>,
    /// The job that computes the next one, and its field.
    job: Option<(JobNumber, UnsignedField)>,
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
    pub fn arrived(&mut self, octets: &[u8]) {
        if let Stage::Arriving(reading) = &mut self.stage {
            reading.arrived(octets);
        }
    }

    /// Counts what is kept of it.
    ///
    /// Errors: it is too much, for now.
    pub fn count(&mut self, signer: &mut Signer) -> Result<(), Refusal> {
        let bytes = match &self.stage {
            Stage::Arriving(reading) => reading.footprint(),
            Stage::Arrived(message, ..) => message.footprint(),
            Stage::Over => 0,
        };
        // The signed part of a header is copied once more.
        signer.kept.charge(&mut self.charge, self.address, 2 * bytes).map_err(|_| Refusal::Busy)
    }

    /// There is no more of the message, which is signed if its author's domain `is_ours`. Returns
    /// its authors, if they can be told.
    pub fn ended(&mut self, is_ours: impl FnOnce(&Name) -> bool) -> Option<Authors> {
        if !matches!(self.stage, Stage::Arriving(_)) {
            return None;
        }
        let Stage::Arriving(reading) = core::mem::replace(&mut self.stage, Stage::Over) else {
            return None;
        };
        let message = reading.ended();
        let authors = Authors::of(message.header(), message.is_cut());
        if let Author::Of(domain) = Author::of(message.header(), message.is_cut())
            && is_ours(&domain)
        {
            self.stage = Stage::Arrived(Box::new(message), domain, 0);
        }
        authors
    }

    /// It goes without a signature: it is in another's name than that of the account that sends it.
    pub fn leave_unsigned(&mut self) {
        self.stage = Stage::Over;
    }

    /// Asks for the next signature, if one is left and none was asked for. What waits for it is
    /// resumed `at` this point. Returns whether one is being computed.
    pub fn ask(
        &mut self,
        at: Continuation,
        signer: &Signer,
        compute: &mut Compute,
        now: UnixTime,
    ) -> bool {
        while self.job.is_none()
            && let Stage::Arrived(message, domain, next) = &mut self.stage
        {
            let Some(key) = signer.keys.get(*next) else {
                self.stage = Stage::Over;
                return false;
            };
            // Another key may sign a message that this key cannot.
            if let Ok(mut field) = message.prepare(key, domain, now) {
                self.job = Some((compute.ask_signature(at, field.take_signed(), *next), field));
            }
            *next += 1;
        }
        self.job.is_some()
    }

    /// Takes the signature that was asked for. False: it is not there.
    pub fn take_signature(&mut self, compute: &mut Compute) -> bool {
        let result = self.job.as_ref().and_then(|(number, _)| compute.take_result(*number));
        let Some((JobResult::Signed(signature), (_, field))) =
            result.and_then(|result| Some((result, self.job.take()?)))
        else {
            return false;
        };
        self.signatures.extend(signature.map(|signature| field.with_signature(&signature)));
        true
    }

    /// It is not needed any more.
    pub fn forget(&mut self, signer: &mut Signer, compute: &mut Compute) {
        self.stage = Stage::Over;
        if let Some((number, _)) = self.job.take() {
            compute.abandon(number);
        }
        signer.kept.release(&mut self.charge, self.address);
    }

    /// What stands above the letter: `first`, and as many signatures as there is room for.
    pub fn head(&self, first: &[u8]) -> Vec<u8> {
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

/// Adds as much white space to the last line as makes the number of octets one that a head can
/// have. Behind a signature it means nothing (RFC 6376 sections 3.4.2 and 3.5).
fn fill_up(head: &mut Vec<u8>) {
    let spaces = head.len().next_multiple_of(Head::UNIT) - head.len();
    let end = head.len().saturating_sub(b"\r\n".len());
    head.splice(end..end, core::iter::repeat_n(b' ', spaces));
}
