//! Computes jobs: password hashes and signatures. Each job takes some milliseconds of a core and
//! cannot be split. A core computes one job at a time, when it has time, in a fair order.
//!
//! A job owns its input, so any core can compute it. The first of several cores computes no jobs,
//! because the disk and often the network card depend on that core. The result goes to the frame
//! that requested the job. The continuation resumes that frame.
//!
//! - Signatures are computed in the order of their requests.
//! - Hashes of clients without login failures come before hashes of clients with failures,
//!   whichever core requested them (`mail::Throttle::guilt`). Every fourth hash is the one that has
//!   waited longest, so that no hash waits for ever.
//! - After a hash, a busy core computes no other hash for as long as that hash took. So hashes take
//!   at most half of a busy core's time.
//!
//! Invariants:
//! - A frame has at most one job. A result carries the number of its job, so it is never taken for
//!   the result of another job.
//! - The job of a session that has ended is not computed, unless its computation has begun already.

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

/// One in this many hashes is the hash that has waited longest.
const HASHES_PER_OLDEST: u32 = 4;

/// Identifies a job among the jobs that a core has requested.
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
    /// Take as long as a check. Used for a name without an account.
    Spend {
        /// The password that a client has given.
        password: Vec<u8>,
    },
    /// Make the hash of a new password.
    Make {
        /// The new password.
        password: Vec<u8>,
        /// The salt of the hash.
        salt: [u8; mail::SALT_BYTES],
    },
}

/// The result of a job.
pub enum JobResult {
    /// The hash was made from the password.
    Right {
        /// The password that was checked.
        password: Vec<u8>,
        /// The hash that the password was checked against.
        hash: String,
    },
    /// The hash was made from another password.
    Wrong,
    /// The hash of a new password, a PHC string.
    Made(String),
    /// The signature. `None` if the key cannot make it.
    Signed(Option<Vec<u8>>),
}

/// The client that a hash is computed for.
pub struct Applicant {
    /// The client's address.
    pub address: IpAddr,
    /// The account's name, if login failures of this client count.
    pub name: Option<String>,
}

/// A completed job. Its result waits to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoneJob {
    /// The frame that requested the job, and its wait point.
    pub continuation: Continuation,
    /// The number of the job.
    pub number: JobNumber,
}

/// The job, and the frame and core that its result is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct JobRequester {
    number: JobNumber,
    continuation: Continuation,
    /// The core that requested the job. `None` if it is this core.
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
    /// The bytes that the signature covers.
    signed: Vec<u8>,
    /// The number of the key among the keys of the machine.
    key: usize,
}

/// A message about a job from one core to another.
pub enum JobMessage {
    /// Compute a hash.
    HashAsked(Box<HashJob>),
    /// Compute a signature.
    SignatureAsked(Box<SignatureJob>),
    /// The requesting frame does not need the result.
    Unwanted(JobNumber),
    /// The result of a job.
    Computed(JobNumber, Continuation, Box<JobResult>),
}

/// The jobs of one core: the jobs that it computes, and the jobs that it has requested.
pub struct Compute {
    own: CoreId,
    cores: u8,
    next_number: u64,
    /// The hashes that this core computes, in the order of their requests.
    hashes: Vec<HashJob>,
    /// The signatures that this core computes, in the order of their requests.
    signatures: VecDeque<SignatureJob>,
    hashes_begun: u32,
    /// A busy core computes no hash before this time.
    rests_until: Instant,
    /// The jobs of this core that other cores compute.
    away: BTreeMap<JobNumber, CoreId>,
    results: BTreeMap<JobNumber, JobResult>,
    messages: VecDeque<(CoreId, JobMessage)>,
    done: VecDeque<DoneJob>,
    hasher: Hasher,
    /// The signing keys, identified by their numbers.
    keys: Arc<[SigningKey]>,
}

impl Compute {
    /// The jobs of core `own`. `cores`: the number of cores. `keys`: the signing keys.
    pub fn new(own: CoreId, cores: u8, keys: Arc<[SigningKey]>) -> Compute {
        Compute {
            own,
            cores,
            next_number: 0,
            hashes: Vec::new(),
            signatures: VecDeque::new(),
            hashes_begun: 0,
            rests_until: Instant::START,
            away: BTreeMap::new(),
            results: BTreeMap::new(),
            messages: VecDeque::new(),
            done: VecDeque::new(),
            hasher: Hasher::new(),
            keys,
        }
    }

    /// Requests a hash. When the result has arrived, the frame is resumed.
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

    /// Requests a signature over `signed`. `key`: the key's number. When the signature has arrived,
    /// the frame is resumed.
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

    /// Chooses the core that computes the next job (`None`: this core). If another core computes
    /// it, records this in `away`. Also returns the requester, which gets the result.
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

    /// The core that computes the next job: the core that computes the fewest jobs for this core.
    /// It is never the first of several cores.
    fn least_busy(&self) -> CoreId {
        let others = (u8::from(self.cores > 1)..self.cores).map(CoreId);
        let load = |core: &CoreId| match *core == self.own {
            true => self.hashes.len() + self.signatures.len(),
            false => self.away.values().filter(|away| *away == core).count(),
        };
        // Among equally busy cores, this core is chosen if it is one of them. Otherwise the other
        // cores take turns.
        let turn = |core: &CoreId| (self.next_number + u64::from(core.0)) % u64::from(self.cores);
        others.min_by_key(|core| (load(core), *core != self.own, turn(core))).unwrap_or(self.own)
    }

    /// Abandons a job: its result is not needed.
    pub fn abandon(&mut self, number: JobNumber) {
        self.remove(|waiting| waiting.core.is_none() && waiting.number == number);
        self.results.remove(&number);
        if let Some(core) = self.away.remove(&number) {
            self.messages.push_back((core, JobMessage::Unwanted(number)));
        }
    }

    /// Takes the job's result, if it has arrived.
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
                    self.job_done(DoneJob { continuation, number }, *result);
                }
            }
        }
    }

    fn job_done(&mut self, done: DoneJob, result: JobResult) {
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

    /// Whether this core has no job to compute.
    pub fn is_idle(&self) -> bool {
        self.hashes.is_empty() && self.signatures.is_empty()
    }

    /// Computes the next signature, which takes up to some milliseconds. Returns false if no
    /// signature waits.
    pub fn compute_signature(&mut self) -> bool {
        let Some(SignatureJob { waiting, signed, key }) = self.signatures.pop_front() else {
            return false;
        };
        let signature = self.keys.get(key).and_then(|key| key.sign(&signed).ok());
        self.computed(waiting, JobResult::Signed(signature));
        true
    }

    /// Computes the next hash, which takes some 20 ms, if the core may hash now. `is_quiet`: the
    /// core has no other work. `clock` returns the time. Returns false if no hash was computed.
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
            HashTask::Check { password, hash } => {
                // Another core may ask before this core knows all accounts.
                self.hasher.make_room_for(core::iter::once(&*hash));
                match self.hasher.verify(&password, &hash) {
                    Ok(true) => JobResult::Right { password, hash },
                    _ => JobResult::Wrong,
                }
            }
            HashTask::Spend { password } => {
                self.hasher.spend(&password);
                JobResult::Wrong
            }
            HashTask::Make { password, salt } => match self.hasher.hash(&password, salt) {
                Ok(hash) => JobResult::Made(hash),
                Err(error) => unreachable!("every accepted password can be hashed: {error:?}"),
            },
        }
    }

    /// Makes the buffer of the hasher large enough to check passwords against all of `hashes`.
    pub fn make_room_for<'a>(&mut self, hashes: impl Iterator<Item = &'a str>) {
        self.hasher.make_room_for(hashes);
    }

    /// Takes the next hash to compute, if the core may hash now. `is_quiet`: the core has no other
    /// work.
    fn next_hash(
        &mut self,
        throttle: &Throttle,
        now: Instant,
        is_quiet: bool,
    ) -> Option<(JobRequester, HashTask)> {
        if self.hashes.is_empty() || now < self.rests_until && !is_quiet {
            return None;
        }
        self.hashes_begun = self.hashes_begun.wrapping_add(1);
        let guilt = |job: &HashJob| match &job.applicant.name {
            Some(name) => throttle.guilt(job.applicant.address, name, now),
            None => 0,
        };
        let place = match self.hashes_begun % HASHES_PER_OLDEST {
            0 => 0,
            _ => self.hashes.iter().enumerate().min_by_key(|(place, job)| (guilt(job), *place))?.0,
        };
        let HashJob { waiting, task, .. } = self.hashes.remove(place);
        Some((waiting, task))
    }

    /// Lets the core rest from hashing for as long as the last hash took, from `began` to `ended`.
    fn rest(&mut self, began: Instant, ended: Instant) {
        self.rests_until = ended + ended.since(began);
    }

    /// Passes the result of a job that this core has computed to its requester.
    fn computed(&mut self, waiting: JobRequester, result: JobResult) {
        let JobRequester { number, continuation, core } = waiting;
        match core {
            None => self.job_done(DoneJob { continuation, number }, result),
            Some(core) => {
                let computed = JobMessage::Computed(number, continuation, Box::new(result));
                self.messages.push_back((core, computed));
            }
        }
    }

    /// The time from which the next hash may be computed, if a hash waits.
    pub fn next_deadline(&self) -> Option<Instant> {
        (!self.hashes.is_empty()).then_some(self.rests_until)
    }
}
