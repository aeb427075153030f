//! Makes ARC sets for the chain of a forwarded message (RFC 8617 §5.1).
//!
//! Invariants:
//! - A failed chain is not extended. The recipient can see the fault too, so a set with the status
//!   `fail` (§5.1.2) would tell the recipient nothing new.
//! - Fields that other servers add in transit are not covered: trace fields, and check results
//!   (§4.1.2). All signatures of the message are covered.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use dns::Name;
use machine::UnixTime;

use crate::chain::{ChainVerdict, SETS_MAX};
use crate::header;
use crate::message::CompleteMessage;
use crate::signing::{FoldedField, SIGNED_FORM, SigningKey, Unsignable, UnsignedField, names};

/// Fields that are covered as often as they occur.
const AS_THEY_ARE: [&str; 3] = ["sender", "content-transfer-encoding", "dkim-signature"];

/// An ARC set that is being made.
pub struct Sealing {
    /// The number of the set.
    instance: usize,
    /// The status of the chain before the set, which the seal states.
    status: &'static str,
    /// The field `ARC-Authentication-Results`. The other two fields are `None` until they are
    /// signed.
    results: String,
    message: Option<String>,
    seal: Option<String>,
}

impl Sealing {
    /// Begins a set on top of a message's chain with the verdict `found`. `results`: the check
    /// results of the message, as in its `Authentication-Results` field.
    ///
    /// Errors: the chain is broken or full, or does not fit the verdict `found`.
    pub fn begin(
        message: &CompleteMessage,
        found: ChainVerdict,
        results: &str,
    ) -> Result<Sealing, Unsignable> {
        let sets = message.chain.as_ref().map_err(|_| Unsignable::ChainBroken)?.sets.len();
        let status = match found {
            ChainVerdict::None if sets == 0 => "none",
            ChainVerdict::Pass if (1..SETS_MAX).contains(&sets) => "pass",
            _ => return Err(Unsignable::ChainBroken),
        };
        let instance = sets + 1;
        let results = format!("ARC-Authentication-Results: i={instance}; {}\r\n", results.trim());
        Ok(Sealing { instance, status, results, message: None, seal: None })
    }

    /// Whether the set still lacks a field.
    pub fn is_open(&self) -> bool {
        self.seal.is_none()
    }

    /// Makes the next field, with its signature.
    ///
    /// Errors: [`Unsignable`].
    pub fn sign(
        &mut self,
        message: &CompleteMessage,
        key: &SigningKey,
        domain: &Name,
        now: UnixTime,
    ) -> Result<(), Unsignable> {
        let mut field = self.prepare(message, key, domain, now)?;
        let signature = key.sign(&field.take_signed())?;
        self.signed(field, &signature);
        Ok(())
    }

    /// The next field without its signature: first `ARC-Message-Signature`, then `ARC-Seal`.
    /// `domain`: the domain that signs, and publishes `key`.
    ///
    /// Errors: [`Unsignable`].
    pub fn prepare(
        &self,
        message: &CompleteMessage,
        key: &SigningKey,
        domain: &Name,
        now: UnixTime,
    ) -> Result<UnsignedField, Unsignable> {
        let instance = self.instance;
        let Some(signature) = &self.message else {
            let body = message.body()?;
            message.check(key, domain)?;
            let mut lines =
                FoldedField::begin(&format!("ARC-Message-Signature: i={instance};"), key);
            lines.add_word("c=relaxed/relaxed;");
            lines.add_signer(key, domain, now);
            return Ok(message.prepare_with(lines, names(&message.header, &AS_THEY_ARE), body));
        };
        let mut sealed = Vec::new();
        message.write_sets(message.chain.as_ref().map_or(&[], |chain| &chain.sets), &mut sealed);
        for field in [&self.results, signature] {
            header::write(field.as_bytes(), SIGNED_FORM, &mut sealed);
        }
        let mut lines = FoldedField::begin(&format!("ARC-Seal: i={instance};"), key);
        lines.add_word(&format!("cv={};", self.status));
        lines.add_signer(key, domain, now);
        Ok(lines.end(sealed))
    }

    /// Adds `signature` to the field that `prepare` returned last, and keeps the field.
    pub fn signed(&mut self, field: UnsignedField, signature: &[u8]) {
        let field = Some(field.with_signature(signature));
        match self.message {
            None => self.message = field,
            Some(_) => self.seal = field,
        }
    }

    /// The fields of the set, to be placed above all other fields. Empty until the set is complete.
    pub fn fields(&self) -> String {
        let [seal, message] =
            [&self.seal, &self.message].map(|field| field.as_deref().unwrap_or_default());
        if self.is_open() { String::new() } else { [seal, message, &self.results].concat() }
    }
}
