//! Prepares a new password on the core of the connection: its hash by a job as in a login (crate
//! `compute`), and its SCRAM verifier step by step, one turn each.

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
    /// The old password, which was right.
    replaced: PasswordMark,
    stage: Stage,
}

enum Stage {
    /// Its hash is being computed.
    Hashing(JobNumber),
    /// It has its hash, and its verifier is being derived.
    Deriving(String, Box<Derivation>),
}

impl PasswordPreparation {
    /// The old password was right: queues the computation of the hash.
    pub(super) fn begin(
        new: Box<PasswordChange>,
        replaced: PasswordMark,
        call: &mut HttpCall<'_>,
    ) -> PasswordPreparation {
        let task = HashTask::Make { password: new.wanted.to_vec(), salt: call.cx.logins.salt() };
        // The client is authenticated: the hash counts against no limit of guesses.
        let applicant = Applicant { address: call.caller.address, name: None };
        let number =
            call.cx.compute.ask_hash(logins::hashed(call.caller.connection.0), applicant, task);
        PasswordPreparation { new, replaced, stage: Stage::Hashing(number) }
    }

    /// The connection is gone: the hash is not needed any more.
    pub(super) fn abandoned(&self, compute: &mut Compute) {
        if let Stage::Hashing(number) = self.stage {
            compute.abandon(number);
        }
    }

    /// Bytes of memory that it takes beside its own size.
    pub(super) fn kept_bytes(&self) -> usize {
        let hash_bytes = match &self.stage {
            // The job has a copy of the password.
            Stage::Hashing(_) => self.new.wanted.len(),
            Stage::Deriving(hash, _) => hash.len(),
        };
        self.new.kept_bytes() + hash_bytes
    }

    /// The session's turn has come. Returns the request to the core of the account once all is
    /// ready.
    pub(super) fn step(&mut self, call: &mut HttpCall<'_>) -> Option<Request> {
        let frame = call.caller.connection.0;
        match &mut self.stage {
            Stage::Hashing(number) => {
                let JobResult::Made(hash) = call.cx.compute.take_result(*number)? else {
                    unreachable!("a hash was asked for")
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
