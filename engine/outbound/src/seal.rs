//! The ARC set (RFC 8617) of a forwarded message, while it is computed.

use alloc::boxed::Box;
use alloc::string::String;

use compute::{Compute, JobNumber, JobResult};
use dkim::{ChainVerdict, Message, Reading, Sealing, UnsignedField};
use dns::Name;
use tasks::Continuation;

use super::context::Context;

/// The ARC set of a message that is forwarded.
pub(super) enum Seal {
    /// It is not known yet whether one is made.
    Unknown,
    /// The message is being hashed. With the results that the set will state.
    Hashing(Box<Reading>, Found),
    /// Its signatures are being computed.
    Signing(Box<Unsealed>),
    /// The fields; empty: none.
    Made(String),
}

/// A message whose ARC set is being signed.
pub(super) struct Unsealed {
    pub(super) message: Message,
    pub(super) sealing: Sealing,
    /// The domain that seals it.
    pub(super) domain: Name,
    /// The next field. Its signature is being computed.
    pub(super) job: Option<(JobNumber, UnsignedField)>,
}

/// The results of the checks when the message arrived.
pub(super) struct Found {
    /// The text of its `Authentication-Results` field.
    pub(super) results: String,
    pub(super) chain: ChainVerdict,
}

impl Unsealed {
    /// Asks for the next signature, and to be told at this continuation. False: it cannot be made.
    pub(super) fn ask(&mut self, at: Continuation, parts: &mut Context<'_>) -> bool {
        let Context { signer, compute, turn, .. } = parts;
        let prepared = signer.sealing_key().and_then(|(number, key)| {
            Some((number, self.sealing.prepare(&self.message, key, &self.domain, turn.wall).ok()?))
        });
        self.job = prepared.map(|(key, mut field)| (compute.ask_signature(at, field.take_signed(), key), field));
        self.job.is_some()
    }

    /// Takes the signature that was asked for. False: it could not be made.
    pub(super) fn take_signature(&mut self, compute: &mut Compute) -> bool {
        let Some((number, field)) = self.job.take() else { return false };
        match compute.take_result(number) {
            Some(JobResult::Signed(Some(signature))) => {
                self.sealing.signed(field, &signature);
                true
            }
            _ => false,
        }
    }
}

impl Seal {
    pub(super) const NOTHING: Seal = Seal::Made(String::new());

    /// The fields that say it.
    pub(super) fn fields(&self) -> &str {
        if let Seal::Made(fields) = self { fields } else { "" }
    }
}
