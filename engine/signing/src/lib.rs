//! Signatures of messages of our own users (DKIM, crate `dkim`). The domain of the message's author
//! signs the message with each key, if it is one of our domains.
//!
//! A message is signed when it is accepted, or when it is written in the webmail. The message is
//! hashed on its way into the store. Its signatures are appended last, and the store puts them
//! above the message ([`store::HeadSize`]). So the message is hashed only once, however often it is
//! sent.
//!
//! Invariants:
//! - The signed bytes are the stored bytes. Only the header of a message is in memory.
//! - A signature takes up to some milliseconds and cannot be interrupted, so it is a job (crate
//!   `compute`). Sessions, request handlers of the webmail, and delivery attempts that add an ARC
//!   set to a forwarded message (`outbound::sealing`) wait for such jobs.
//! - Each message can always keep [`LEAST_BYTES`] of its header. More memory comes from a pool of
//!   [`POOL_BYTES`] for all messages of a core, of which one address gets at most a third
//!   (`budget`). A message that does not fit is refused for now, so that it is not sent unsigned.
//!
//! A message is not signed in three cases. It has no author, or authors of several domains. Its
//! header is too long for signatures. Or there is no space above it for the signatures.

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
use dkim::{Algorithm, CompleteMessage, MessageReader, SigningKey, UnsignedField};
use dns::Name;
use machine::UnixTime;
use store::{HeadSize, Refusal};
use tasks::Continuation;

pub use author::{Author, Authors};

/// The bytes of a header that are always kept: enough for most messages.
pub const LEAST_BYTES: u32 = 16 * 1024;
/// The size of the pool for larger headers, for all messages of a core.
pub const POOL_BYTES: usize = 2 << 20;

/// The keys of a core, and the memory of messages that are being signed.
pub struct Signer {
    /// The keys, in the order of their signatures above a message.
    keys: Arc<[SigningKey]>,
    /// The memory of messages until they are signed.
    kept: MemoryBudget,
}

impl Signer {
    /// `key` is random.
    pub fn new(keys: Arc<[SigningKey]>, key: [u8; 16]) -> Signer {
        Signer { keys, kept: MemoryBudget::new(POOL_BYTES, key) }
    }

    /// The bytes of memory of messages until they are signed.
    pub fn kept_bytes(&self) -> usize {
        self.kept.held()
    }

    /// The key for ARC sets, and its number. It is an RSA key, since not all verifiers support
    /// another algorithm (RFC 8617 section 4.1.3).
    pub fn sealing_key(&self) -> Option<(usize, &SigningKey)> {
        self.keys.iter().enumerate().find(|(_, key)| key.algorithm() == Algorithm::RsaSha256)
    }

    /// Whether the core has a key.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Begins to read a message from `address`, to sign it or at least to find its authors.
    pub fn begin(&self, address: IpAddr) -> Box<Signing> {
        let (stage, charge) = (Stage::Arriving(MessageReader::to_sign()), Charge::new(LEAST_BYTES));
        Box::new(Signing { stage, signatures: Vec::new(), job: None, address, charge })
    }
}

/// A message that is being signed.
pub struct Signing {
    stage: Stage,
    /// The finished signatures, one field each.
    signatures: Vec<String>,
    /// The job that computes the next signature, and the field of that signature.
    job: Option<(JobNumber, UnsignedField)>,
    address: IpAddr,
    /// The memory of this message, in [`Signer::kept`].
    charge: Charge,
}

enum Stage {
    Arriving(MessageReader),
    /// The message is complete, and this domain signs it, next with the key of this number.
    Arrived(Box<CompleteMessage>, Name, usize),
    /// There is nothing more to sign.
    Over,
}

impl Signing {
    /// Takes the next bytes of the message, as they are stored.
    pub fn arrived(&mut self, octets: &[u8]) {
        if let Stage::Arriving(reading) = &mut self.stage {
            reading.arrived(octets);
        }
    }

    /// Charges the memory of this message.
    ///
    /// Errors: there is not enough memory now.
    pub fn count(&mut self, signer: &mut Signer) -> Result<(), Refusal> {
        let bytes = match &self.stage {
            Stage::Arriving(reading) => reading.footprint(),
            Stage::Arrived(message, ..) => message.footprint(),
            Stage::Over => 0,
        };
        // The signed part of a header is copied, so it counts twice.
        signer.kept.charge(&mut self.charge, self.address, 2 * bytes).map_err(|_| Refusal::Busy)
    }

    /// Ends the message. It is signed if its author's domain `is_ours`. Returns the authors, if
    /// they can be determined.
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

    /// Leaves the message unsigned, since its author is not the account that sends it.
    pub fn leave_unsigned(&mut self) {
        self.stage = Stage::Over;
    }

    /// Requests the next signature, if one is left and none is being computed. The result resumes
    /// the continuation `at`. Returns whether a signature is being computed.
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
            // If this key cannot sign the message, another key may be able to.
            if let Ok(mut field) = message.prepare(key, domain, now) {
                self.job = Some((compute.ask_signature(at, field.take_signed(), *next), field));
            }
            *next += 1;
        }
        self.job.is_some()
    }

    /// Takes the requested signature. Returns false if it is not ready.
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

    /// Gives up the signatures, and releases the memory.
    pub fn forget(&mut self, signer: &mut Signer, compute: &mut Compute) {
        self.stage = Stage::Over;
        if let Some((number, _)) = self.job.take() {
            compute.abandon(number);
        }
        signer.kept.release(&mut self.charge, self.address);
    }

    /// The bytes above the message: `first`, as many signatures as fit, and `last`.
    pub fn head(&self, first: &[u8], last: &[u8]) -> Vec<u8> {
        let mut head = first.to_vec();
        for signature in &self.signatures {
            let length = head.len() + signature.len() + last.len();
            if length <= HeadSize::OCTETS_MAX - HeadSize::UNIT {
                head.extend_from_slice(signature.as_bytes());
            }
        }
        head.extend_from_slice(last);
        fill_up(&mut head);
        head
    }
}

/// Pads the last line with white space to a valid length of a head. White space after a signature
/// has no meaning (RFC 6376 sections 3.4.2 and 3.5).
fn fill_up(head: &mut Vec<u8>) {
    let spaces = head.len().next_multiple_of(HeadSize::UNIT) - head.len();
    let end = head.len().saturating_sub(b"\r\n".len());
    head.splice(end..end, core::iter::repeat_n(b' ', spaces));
}
