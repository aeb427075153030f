//! Prepares a new password on the core of the connection. The crate `compute` computes its hash, in
//! the same way as for a login. Then this file derives the SCRAM verifier in several steps, one in
//! each turn.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use accounts::logins;
use compute::{Applicant, Compute, HashTask, JobNumber, JobResult};
use mail::PasswordMark;
use sasl::Derivation;
use webmail::{PasswordChange, Request, Secrets};

use super::context::HttpCall;

/// A new password that is being prepared.
pub(super) struct PasswordPreparation {
    new: Box<PasswordChange>,
    /// The mark of the old password. The client has proved that it knows this password.
    replaced: PasswordMark,
    stage: Stage,
}

enum Stage {
    /// The hash is being computed.
    Hashing(JobNumber),
    /// The hash is known, and the verifier is being derived.
    Deriving(String, Box<Derivation>),
}

impl PasswordPreparation {
    /// Queues the computation of the hash, after the client has proved the old password.
    pub(super) fn begin(
        new: Box<PasswordChange>,
        replaced: PasswordMark,
        call: &mut HttpCall<'_>,
    ) -> PasswordPreparation {
        let task = HashTask::Make { password: new.wanted.to_vec(), salt: call.cx.logins.salt() };
        // The client is authenticated, so the computation does not count as a password guess.
        let applicant = Applicant { address: call.caller.address, name: None };
        let number =
            call.cx.compute.ask_hash(logins::hashed(call.caller.connection.0), applicant, task);
        PasswordPreparation { new, replaced, stage: Stage::Hashing(number) }
    }

    /// The connection has ended, so the hash is no longer needed.
    pub(super) fn abandoned(&self, compute: &mut Compute) {
        if let Stage::Hashing(number) = self.stage {
            compute.abandon(number);
        }
    }

    /// The memory of the preparation in bytes, without the [`PasswordPreparation`] itself.
    pub(super) fn kept_bytes(&self) -> usize {
        let hash_bytes = match &self.stage {
            // The hash job has a copy of the password.
            Stage::Hashing(_) => self.new.wanted.len(),
            Stage::Deriving(hash, _) => hash.len(),
        };
        self.new.kept_bytes() + hash_bytes
    }

    /// Does the next step, since the session's turn has come. Returns the request to the core of
    /// the account when hash and verifier are ready.
    pub(super) fn step(&mut self, call: &mut HttpCall<'_>) -> Option<Request> {
        let frame = call.caller.connection.0;
        match &mut self.stage {
            Stage::Hashing(number) => {
                let JobResult::Made(hash) = call.cx.compute.take_result(*number)? else {
                    unreachable!("the result of a hash job is a hash")
                };
                let derivation = Derivation::begin(&self.new.wanted, call.cx.logins.salt());
                self.stage = Stage::Deriving(hash, Box::new(derivation));
            }
            Stage::Deriving(hash, derivation) => {
                if let Some(verifier) = derivation.step() {
                    let (hash, replaced) = (core::mem::take(hash), self.replaced);
                    let secrets = Secrets { hash, verifier: verifier.to_string(), replaced };
                    let PasswordChange { ticket, token, .. } = &*self.new;
                    return Some(Request::SetPassword(ticket.clone(), token.clone(), Ok(secrets)));
                }
            }
        }
        call.cx.connections.resume(frame);
        None
    }
}
