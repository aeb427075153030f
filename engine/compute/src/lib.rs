//! Jobs: password hashes and signatures. Each takes some milliseconds of a core and cannot be
//! split. A core computes one at a time, when it has time, in a fair order.
//!
//! A job owns its input, so any core can compute it. The first of several cores computes none,
//! because the disk and often the network card depend on that core. The result goes to the frame
//! that asked, which is resumed by its continuation.
//!
//! - Signatures are computed in the order of their requests.
//! - Hashes of clients without login failures come before hashes of clients with failures, on
//!   whatever core they were asked for (`mail::Throttle::guilt`). Every fourth turn goes to the
//!   hash that has waited longest, so that each has its turn.
//! - After a hash a core rests from hashing for as long as the hash took, unless it has nothing
//!   else to do. So hashes take at most half of a busy core's time.
//!
//! Invariants:
//! - A frame has one job at most. A result carries the number of its job, so it is never taken for
//!   the result of another.
//! - The job of a session that is gone is not computed, unless it is being computed already.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

extern crate alloc;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use dkim::SigningKey;
use machine::{CoreId, Instant};
use mail::{Hasher, Throttle};
use tasks::Continuation;

/// One hash in this many is the one that has waited longest.
const TURNS_PER_OLDEST: u32 = 4;

/// Identifies a job among those that a core has asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct JobNumber(u64);

/// The work of a [`HashJob`].
pub enum HashTask {
    /// Check whether the hash was made from this password.
    Check {
        /// The password that a client has given.
        password: Vec<u8>,
        /// The account's hash, a PHC string.
        hash: String,
    },
    /// Take as long as a check, for a name without an account.
    Spend {
        /// The password that a client has given.
        password: Vec<u8>,
    },
    /// Make the hash of a new password.
    Make {
        /// The new password.
        password: Vec<u8>,
        /// Its salt.
        salt: [u8; mail::SALT_BYTES],
    },
}

/// The result of a job.
pub enum JobResult {
    /// The hash was made from the password.
    Right {
        /// The password that was checked.
        password: Vec<u8>,
        /// The hash that it was checked against.
        hash: String,
    },
    /// The hash was made from another password.
    Wrong,
    /// The hash of a new password, a PHC string.
    Made(String),
    /// The signature. `None`: the key cannot make it.
    Signed(Option<Vec<u8>>),
}

/// The client that a hash is computed for.
pub struct Applicant {
    /// The client's address.
    pub address: IpAddr,
    /// The account's name, if login failures of this client count.
    pub name: Option<String>,
}

/// A completed job with a result that waits to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoneJob {
    /// The frame that has asked for it, and its wait point.
    pub continuation: Continuation,
    /// The job.
    pub number: JobNumber,
}

/// The job and the core that a result is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct JobRequester {
    number: JobNumber,
    continuation: Continuation,
    /// The core that asks. `None`: this one.
    core: Option<CoreId>,
}

/// A hash to compute.
pub struct HashJob {
    waiting: JobRequester,
    applicant: Applicant,
    task: HashTask,
}

/// A signature to compute.
pub struct SignatureJob {
    waiting: JobRequester,
    /// The bytes that it covers.
    signed: Vec<u8>,
    /// The key's number among those of the machine.
    key: usize,
}

/// A message about a job from one core to another.
pub enum JobMessage {
    /// Compute a hash.
    HashAsked(Box<HashJob>),
    /// Compute a signature.
    SignatureAsked(Box<SignatureJob>),
    /// The waiting frame is gone.
    Unwanted(JobNumber),
    /// A result.
    Computed(JobNumber, Continuation, Box<JobResult>),
}

/// The jobs of one core: those that it computes, and those that it waits for.
pub struct Compute {
    own: CoreId,
    cores: u8,
    next_number: u64,
    /// In the order of their requests.
    hashes: Vec<HashJob>,
    /// In the order of their requests.
    signatures: VecDeque<SignatureJob>,
    turns: u32,
    rests_until: Instant,
    /// Jobs that other cores compute for this one.
    away: BTreeMap<JobNumber, CoreId>,
    results: BTreeMap<JobNumber, JobResult>,
    messages: VecDeque<(CoreId, JobMessage)>,
    done: VecDeque<DoneJob>,
    hasher: Hasher,
    /// The signing keys, identified by their numbers.
    keys: Arc<[SigningKey]>,
}

impl Compute {
    /// The jobs of core `own`, one of `cores`. `keys`: the signing keys.
    pub fn new(own: CoreId, cores: u8, keys: Arc<[SigningKey]>) -> Compute {
        Compute {
            own,
            cores,
            next_number: 0,
            hashes: Vec::new(),
            signatures: VecDeque::new(),
            turns: 0,
            rests_until: Instant::START,
            away: BTreeMap::new(),
            results: BTreeMap::new(),
            messages: VecDeque::new(),
            done: VecDeque::new(),
            hasher: Hasher::new(),
            keys,
        }
    }

    /// Asks for a hash. The frame is resumed when the result is there.
    pub fn ask_hash(
        &mut self,
        continuation: Continuation,
        applicant: Applicant,
        task: HashTask,
    ) -> JobNumber {
        let (core, waiting) = self.place(continuation);
        let job = HashJob { waiting, applicant, task };
        match core {
            None => self.hashes.push(job),
            Some(core) => self.messages.push_back((core, JobMessage::HashAsked(Box::new(job)))),
        }
        waiting.number
    }

    /// Asks for a signature over `signed`. `key`: the key's number. The frame is resumed when the
    /// signature is there.
    pub fn ask_signature(
        &mut self,
        continuation: Continuation,
        signed: Vec<u8>,
        key: usize,
    ) -> JobNumber {
        let (core, waiting) = self.place(continuation);
        let job = SignatureJob { waiting, signed, key };
        match core {
            None => self.signatures.push_back(job),
            Some(core) => {
                self.messages.push_back((core, JobMessage::SignatureAsked(Box::new(job))))
            }
        }
        waiting.number
    }

    /// The core that computes the next job (`None`: this one), and the destination of the result.
    fn place(&mut self, continuation: Continuation) -> (Option<CoreId>, JobRequester) {
        let number = JobNumber(self.next_number);
        self.next_number += 1;
        match self.least_busy() {
            core if core == self.own => (None, JobRequester { number, continuation, core: None }),
            core => {
                self.away.insert(number, core);
                (Some(core), JobRequester { number, continuation, core: Some(self.own) })
            }
        }
    }

    fn remove(&mut self, is_unwanted: impl Fn(JobRequester) -> bool) {
        self.hashes.retain(|job| !is_unwanted(job.waiting));
        self.signatures.retain(|job| !is_unwanted(job.waiting));
    }

    /// The core that computes the next job: the one with the fewest jobs of this core. It is never
    /// the first of several cores.
    fn least_busy(&self) -> CoreId {
        let others = (u8::from(self.cores > 1)..self.cores).map(CoreId);
        let load = |core: &CoreId| match *core == self.own {
            true => self.hashes.len() + self.signatures.len(),
            false => self.away.values().filter(|away| *away == core).count(),
        };
        // On a tie it is this core, or else the others in turn.
        let turn = |core: &CoreId| (self.next_number + u64::from(core.0)) % u64::from(self.cores);
        others.min_by_key(|core| (load(core), *core != self.own, turn(core))).unwrap_or(self.own)
    }

    /// The job's result is not needed any more.
    pub fn abandon(&mut self, number: JobNumber) {
        self.remove(|waiting| waiting.core.is_none() && waiting.number == number);
        self.results.remove(&number);
        if let Some(core) = self.away.remove(&number) {
            self.messages.push_back((core, JobMessage::Unwanted(number)));
        }
    }

    /// The job's result, if it is there.
    pub fn take_result(&mut self, number: JobNumber) -> Option<JobResult> {
        self.results.remove(&number)
    }

    /// Takes a message from another core.
    pub fn message_arrived(&mut self, from: CoreId, message: JobMessage) {
        match message {
            JobMessage::HashAsked(job) => self.hashes.push(*job),
            JobMessage::SignatureAsked(job) => self.signatures.push_back(*job),
            JobMessage::Unwanted(number) => {
                self.remove(|waiting| waiting.core == Some(from) && waiting.number == number);
            }
            // The result of an abandoned job is not kept.
            JobMessage::Computed(number, continuation, result) => {
                if self.away.remove(&number).is_some() {
                    self.is_done(DoneJob { continuation, number }, *result);
                }
            }
        }
    }

    fn is_done(&mut self, done: DoneJob, result: JobResult) {
        self.results.insert(done.number, result);
        self.done.push_back(done);
    }

    /// The next completed job. Its frame must be resumed.
    pub fn next_done(&mut self) -> Option<DoneJob> {
        self.done.pop_front()
    }

    /// The next message to another core.
    pub fn next_message(&mut self) -> Option<(CoreId, JobMessage)> {
        self.messages.pop_front()
    }

    /// Whether this core has nothing to compute.
    pub fn is_idle(&self) -> bool {
        self.hashes.is_empty() && self.signatures.is_empty()
    }

    /// Computes the next signature, which takes up to some milliseconds. Returns false if there is
    /// none.
    pub fn compute_signature(&mut self) -> bool {
        let Some(SignatureJob { waiting, signed, key }) = self.signatures.pop_front() else {
            return false;
        };
        let signature = self.keys.get(key).and_then(|key| key.sign(&signed).ok());
        self.computed(waiting, JobResult::Signed(signature));
        true
    }

    /// Computes the next hash, which takes some 20 ms, if that is allowed now. `is_quiet`: the core
    /// has nothing else to do. `clock` returns the time. Returns false if none was computed.
    pub fn compute_hash(
        &mut self,
        throttle: &Throttle,
        now: Instant,
        is_quiet: bool,
        mut clock: impl FnMut() -> Instant,
    ) -> bool {
        let Some((waiting, task)) = self.next_hash(throttle, now, is_quiet) else { return false };
        let began = clock();
        let result = self.hash(task);
        self.rest(began, clock());
        self.computed(waiting, result);
        true
    }

    fn hash(&mut self, task: HashTask) -> JobResult {
        match task {
            HashTask::Check { password, hash } => match self.hasher.verify(&password, &hash) {
                Ok(true) => JobResult::Right { password, hash },
                _ => JobResult::Wrong,
            },
            HashTask::Spend { password } => {
                self.hasher.spend(&password);
                JobResult::Wrong
            }
            HashTask::Make { password, salt } => JobResult::Made(self.hash_now(&password, salt)),
        }
    }

    /// Hashes a new password at once.
    pub fn hash_now(&mut self, password: &[u8], salt: [u8; mail::SALT_BYTES]) -> String {
        match self.hasher.hash(password, salt) {
            Ok(hash) => hash,
            Err(error) => unreachable!("every password that is kept can be hashed: {error:?}"),
        }
    }

    /// Checks at once whether `hash` was made from the password.
    pub fn is_password_of(&mut self, password: &str, hash: &str) -> bool {
        self.hasher.make_room_for(core::iter::once(hash));
        self.hasher.verify(password.as_bytes(), hash) == Ok(true)
    }

    /// Makes the buffer large enough to check passwords against all of `hashes`.
    pub fn make_room_for<'a>(&mut self, hashes: impl Iterator<Item = &'a str>) {
        self.hasher.make_room_for(hashes);
    }

    /// The next hash to compute, if that is allowed now. `is_quiet`: the core has nothing else to
    /// do.
    fn next_hash(
        &mut self,
        throttle: &Throttle,
        now: Instant,
        is_quiet: bool,
    ) -> Option<(JobRequester, HashTask)> {
        if self.hashes.is_empty() || now < self.rests_until && !is_quiet {
            return None;
        }
        self.turns = self.turns.wrapping_add(1);
        let guilt = |job: &HashJob| match &job.applicant.name {
            Some(name) => throttle.guilt(job.applicant.address, name, now),
            None => 0,
        };
        let place = match self.turns % TURNS_PER_OLDEST {
            0 => 0,
            _ => self.hashes.iter().enumerate().min_by_key(|(place, job)| (guilt(job), *place))?.0,
        };
        let HashJob { waiting, task, .. } = self.hashes.remove(place);
        Some((waiting, task))
    }

    /// A hash took from `began` to `ended`. The core rests from hashing after it.
    fn rest(&mut self, began: Instant, ended: Instant) {
        self.rests_until = ended + ended.since(began);
    }

    /// This core has computed a job.
    fn computed(&mut self, waiting: JobRequester, result: JobResult) {
        let JobRequester { number, continuation, core } = waiting;
        match core {
            None => self.is_done(DoneJob { continuation, number }, result),
            Some(core) => {
                let computed = JobMessage::Computed(number, continuation, Box::new(result));
                self.messages.push_back((core, computed));
            }
        }
    }

    /// When the next hash may be computed, if there is one.
    pub fn next_deadline(&self) -> Option<Instant> {
        (!self.hashes.is_empty()).then_some(self.rests_until)
    }
}
