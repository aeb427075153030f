//! Jobs: password hashes and signatures. Each takes some milliseconds of a core and cannot be cut.
//! A core computes one at a time, when it has the time, in a fair order.
//!
//! A job owns its input, so any core can compute it. The first of several cores computes none: the
//! disk and often the network card depend on that core. The result goes to the frame that asked,
//! which is resumed by its continuation.
//!
//! - Signatures are computed in the order in which they were asked for.
//! - Hashes of clients without failures come before hashes of clients with failures, from wherever
//!   they come (`mail::Throttle::guilt`). Every fourth turn goes to the hash that has waited
//!   longest, so that each has its turn.
//! - After a hash a core rests from hashing as long as the hash took, unless it has nothing else to
//!   do. So hashes take half of a busy core's time at most.
//!
//! Invariants:
//! - A frame has one job at most. A result carries the number of its job, so it is never taken for
//!   the result of another.
//! - A session's job is not computed once the session is gone, unless it is being computed already.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

extern crate alloc;

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

/// One hash in so many is the one that has waited longest.
const TURNS_PER_OLDEST: u32 = 4;

/// Names a job among those that a core has asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct JobNumber(u64);

/// The work of a [`HashJob`].
pub enum HashTask {
    /// Whether this is the password that the hash was made of.
    Check {
        /// The password that a client has given.
        password: Vec<u8>,
        /// The account's hash, a PHC string.
        hash: String,
    },
    /// Nothing, but it takes as long as a check: no account has this password.
    Spend {
        /// The password that a client has given.
        password: Vec<u8>,
    },
    /// The hash of a new password.
    Make {
        /// The new password.
        password: Vec<u8>,
        /// Its salt.
        salt: [u8; mail::SALT_BYTES],
    },
}

/// The result of a job.
pub enum JobResult {
    /// The password is the one that the hash was made of.
    Right {
        /// The password that was checked.
        password: Vec<u8>,
        /// The hash that it was checked against.
        hash: String,
    },
    /// The password is another.
    Wrong,
    /// The hash of a new password, a PHC string.
    Made(String),
    /// The signature; `None`: the key cannot make it.
    Signed(Option<Vec<u8>>),
}

/// The client that a hash is computed for.
pub struct Applicant {
    /// The client's address.
    pub address: IpAddr,
    /// The account's name, if failures of this client count.
    pub name: Option<String>,
}

/// A job that is done: its result waits to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The frame that has asked for it, and the point at which that waits.
    pub continuation: Continuation,
    /// The job.
    pub number: JobNumber,
}

/// The job and the core that a result is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiting {
    number: JobNumber,
    continuation: Continuation,
    /// The core that asks; `None`: this one.
    core: Option<CoreId>,
}

/// A hash to be computed.
pub struct HashJob {
    waiting: Waiting,
    applicant: Applicant,
    task: HashTask,
}

/// A signature to be computed.
pub struct SignatureJob {
    waiting: Waiting,
    /// The bytes that it covers.
    signed: Vec<u8>,
    /// The key's number among those of the machine.
    key: usize,
}

/// A message of one core to another about a job.
pub enum JobMessage {
    /// A hash is to be computed.
    HashAsked(Box<HashJob>),
    /// A signature is to be computed.
    SignatureAsked(Box<SignatureJob>),
    /// The frame that waits is gone.
    Unwanted(JobNumber),
    /// A result.
    Computed(JobNumber, Continuation, Box<JobResult>),
}

/// The jobs of one core: those that it computes, and those that it waits for.
pub struct Compute {
    own: CoreId,
    cores: u8,
    next_number: u64,
    /// In the order in which they came.
    hashes: Vec<HashJob>,
    /// The same.
    signatures: VecDeque<SignatureJob>,
    turns: u32,
    rests_until: Instant,
    /// Jobs that other cores compute for this one.
    away: BTreeMap<JobNumber, CoreId>,
    results: BTreeMap<JobNumber, JobResult>,
    messages: VecDeque<(CoreId, JobMessage)>,
    done: VecDeque<Done>,
    hasher: Hasher,
    /// The keys that sign, known by their numbers.
    keys: Arc<[SigningKey]>,
}

impl Compute {
    /// For core `own` of so many. `keys`: those that sign.
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
    pub fn ask_hash(&mut self, continuation: Continuation, applicant: Applicant, task: HashTask) -> JobNumber {
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
    pub fn ask_signature(&mut self, continuation: Continuation, signed: Vec<u8>, key: usize) -> JobNumber {
        let (core, waiting) = self.place(continuation);
        let job = SignatureJob { waiting, signed, key };
        match core {
            None => self.signatures.push_back(job),
            Some(core) => self.messages.push_back((core, JobMessage::SignatureAsked(Box::new(job)))),
        }
        waiting.number
    }

    /// The core that computes the next job (`None`: this one), and where the result belongs.
    fn place(&mut self, continuation: Continuation) -> (Option<CoreId>, Waiting) {
        let number = JobNumber(self.next_number);
        self.next_number += 1;
        match self.least_busy() {
            core if core == self.own => (None, Waiting { number, continuation, core: None }),
            core => {
                self.away.insert(number, core);
                (Some(core), Waiting { number, continuation, core: Some(self.own) })
            }
        }
    }

    fn remove(&mut self, is_unwanted: impl Fn(Waiting) -> bool) {
        self.hashes.retain(|job| !is_unwanted(job.waiting));
        self.signatures.retain(|job| !is_unwanted(job.waiting));
    }

    /// The core that computes the next job: the one with the fewest jobs of this core. It is never
    /// the first of several.
    fn least_busy(&self) -> CoreId {
        let others = (u8::from(self.cores > 1)..self.cores).map(CoreId);
        let load = |core: &CoreId| match *core == self.own {
            true => self.hashes.len() + self.signatures.len(),
            false => self.away.values().filter(|away| *away == core).count(),
        };
        // On a tie it is this core, or each of the others in turn.
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
                    self.is_done(Done { continuation, number }, *result);
                }
            }
        }
    }

    fn is_done(&mut self, done: Done, result: JobResult) {
        self.results.insert(done.number, result);
        self.done.push_back(done);
    }

    /// The next job that is done. Its frame is to be resumed.
    pub fn next_done(&mut self) -> Option<Done> {
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

    /// Computes the next signature, which takes up to some milliseconds. False: there is none.
    pub fn compute_signature(&mut self) -> bool {
        let Some(SignatureJob { waiting, signed, key }) = self.signatures.pop_front() else { return false };
        let signature = self.keys.get(key).and_then(|key| key.sign(&signed).ok());
        self.computed(waiting, JobResult::Signed(signature));
        true
    }

    /// Computes the next hash, which takes some 20 ms, if one may be computed now. `is_quiet`: the core
    /// has nothing else to do. `clock` says what time it is. False: none was computed.
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

    /// The hash of a new password, at once.
    pub fn hash_now(&mut self, password: &[u8], salt: [u8; mail::SALT_BYTES]) -> String {
        match self.hasher.hash(password, salt) {
            Ok(hash) => hash,
            Err(error) => unreachable!("every password that is kept can be hashed: {error:?}"),
        }
    }

    /// Whether a password is the one that `hash` was made of, at once.
    pub fn is_password_of(&mut self, password: &str, hash: &str) -> bool {
        self.hasher.make_room_for(core::iter::once(hash));
        self.hasher.verify(password.as_bytes(), hash) == Ok(true)
    }

    /// Makes room for checking passwords against all of `hashes`.
    pub fn make_room_for<'a>(&mut self, hashes: impl Iterator<Item = &'a str>) {
        self.hasher.make_room_for(hashes);
    }

    /// The next hash to compute, if one may be computed now. `is_quiet`: the core has nothing else
    /// to do.
    fn next_hash(&mut self, throttle: &Throttle, now: Instant, is_quiet: bool) -> Option<(Waiting, HashTask)> {
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

    /// A hash took from `began` to `ended`: the core rests from hashing.
    fn rest(&mut self, began: Instant, ended: Instant) {
        self.rests_until = ended + ended.since(began);
    }

    /// This core has computed a job.
    fn computed(&mut self, waiting: Waiting, result: JobResult) {
        let Waiting { number, continuation, core } = waiting;
        match core {
            None => self.is_done(Done { continuation, number }, result),
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use core::net::Ipv4Addr;
    use machine::Micros;
    use tasks::{Entry, FrameId};

    const NOW: Instant = Instant::START;
    const HASH: Micros = Micros::from_millis(20);

    fn jobs_of(core: u8, cores: u8) -> Compute {
        Compute::new(CoreId(core), cores, Arc::from([]))
    }

    fn at(index: u32) -> Continuation {
        Continuation { frame: FrameId::new(index, 0), entry: Entry(0) }
    }

    fn address(network: u8, host: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, network, host))
    }

    /// A session at `address` has given a password for an account of `name`.
    fn ask(jobs: &mut Compute, index: u32, address: IpAddr, name: &str) -> JobNumber {
        let applicant = Applicant { address, name: Some(name.to_string()) };
        jobs.ask_hash(at(index), applicant, HashTask::Spend { password: Vec::new() })
    }

    /// Computes a hash, and returns the index of the session that asked for it.
    fn compute(jobs: &mut Compute, throttle: &Throttle) -> Option<usize> {
        let (waiting, _) = jobs.next_hash(throttle, NOW, true)?;
        jobs.computed(waiting, JobResult::Wrong);
        jobs.next_done().map(|done| done.continuation.frame.index())
    }

    /// Many clients of one network fail to log in to one account, and each has a job. Returns the
    /// throttle that knows of the failures.
    fn flood(jobs: &mut Compute) -> Throttle {
        let mut throttle = Throttle::new([1; 16]);
        for host in 0..100 {
            throttle.failure_known(address(1, host), "ada", NOW);
            ask(jobs, u32::from(host), address(1, host), "ada");
        }
        throttle
    }

    #[test]
    fn a_client_without_failures_is_not_behind_a_flood() {
        let mut jobs = jobs_of(0, 1);
        let throttle = flood(&mut jobs);
        ask(&mut jobs, 200, address(2, 1), "grace");
        ask(&mut jobs, 201, address(3, 1), "ada");
        let turns: Vec<usize> = (0..4).filter_map(|_| compute(&mut jobs, &throttle)).collect();
        assert_eq!(turns, [200, 201, 0, 1], "other networks come first, and one account's failures count little");
    }

    #[test]
    fn every_fourth_hash_is_the_one_that_waits_longest() {
        let mut jobs = jobs_of(0, 1);
        let throttle = flood(&mut jobs);
        let mut turns = Vec::new();
        for index in 200..208 {
            ask(&mut jobs, index, address(2, index as u8), "grace");
            turns.extend(compute(&mut jobs, &throttle));
        }
        assert_eq!(turns, [200, 201, 202, 0, 203, 204, 205, 1]);
    }

    #[test]
    fn a_busy_core_hashes_half_of_its_time() {
        let mut jobs = jobs_of(0, 1);
        let throttle = flood(&mut jobs);
        let (mut now, mut hashed) = (NOW, Micros(0));
        let end = NOW + Micros::from_secs(1);
        while now < end {
            match jobs.next_hash(&throttle, now, false) {
                Some((waiting, _)) => {
                    let began = now;
                    now = now + HASH;
                    hashed = Micros(hashed.0 + HASH.0);
                    jobs.rest(began, now);
                    jobs.computed(waiting, JobResult::Wrong);
                }
                None => now = now + Micros::from_millis(1),
            }
        }
        assert_eq!(hashed, Micros::from_millis(500));
        assert!(jobs.next_hash(&throttle, now, true).is_some(), "an idle core does not rest");
    }

    #[test]
    fn a_core_says_when_it_has_rested() {
        let mut jobs = jobs_of(0, 1);
        assert_eq!(jobs.next_deadline(), None);
        let throttle = flood(&mut jobs);
        let (waiting, _) = jobs.next_hash(&throttle, NOW, false).unwrap();
        jobs.rest(NOW, NOW + HASH);
        jobs.computed(waiting, JobResult::Wrong);
        assert_eq!(jobs.next_deadline(), Some(NOW + HASH + HASH));
    }

    /// Core `own` asks for `count` hashes. Returns each core that computes some, and how many.
    fn cores_asked(own: u8, cores: u8, count: u32) -> Vec<(usize, usize)> {
        let mut jobs = jobs_of(own, cores);
        for index in 0..count {
            ask(&mut jobs, index, address(1, 1), "ada");
        }
        let mut computed: BTreeMap<usize, usize> = BTreeMap::new();
        while let Some((core, _)) = jobs.next_message() {
            *computed.entry(core.0.into()).or_default() += 1;
        }
        if !jobs.hashes.is_empty() {
            computed.insert(own.into(), jobs.hashes.len());
        }
        computed.into_iter().collect()
    }

    #[test]
    fn the_first_of_several_cores_computes_no_hash() {
        assert_eq!(cores_asked(0, 1, 9), [(0, 9)]);
        assert_eq!(cores_asked(0, 2, 9), [(1, 9)]);
        assert_eq!(cores_asked(1, 2, 9), [(1, 9)]);
        assert_eq!(cores_asked(0, 4, 9), [(1, 3), (2, 3), (3, 3)]);
        assert_eq!(cores_asked(2, 4, 9), [(1, 3), (2, 3), (3, 3)]);
        assert_eq!(cores_asked(2, 4, 1), [(2, 1)], "one that is free does it itself");
    }

    #[test]
    fn the_first_of_several_cores_computes_no_signature() {
        let mut cores = [jobs_of(0, 2), jobs_of(1, 2)];
        let number = cores[0].ask_signature(at(3), b"signed".to_vec(), 1);
        assert!(!cores[0].compute_signature());
        assert_eq!(carry(&mut cores), []);
        let job = &cores[1].signatures[0];
        assert_eq!((job.signed.as_slice(), job.key), (&b"signed"[..], 1));
        assert!(cores[1].compute_signature());
        assert_eq!(carry(&mut cores), [FrameId::new(3, 0)]);
        assert!(matches!(cores[0].take_result(number), Some(JobResult::Signed(None))));
    }

    #[test]
    fn a_signature_does_not_wait_behind_hashes() {
        let mut jobs = jobs_of(0, 1);
        flood(&mut jobs);
        jobs.ask_signature(at(1), Vec::new(), 0);
        assert!(jobs.compute_signature());
    }

    /// Delivers the messages of two cores to each other. Returns the sessions that are resumed.
    fn carry(cores: &mut [Compute; 2]) -> Vec<FrameId> {
        let mut resumed = Vec::new();
        for from in [0, 1] {
            while let Some((core, message)) = cores[from].next_message() {
                let to = &mut cores[usize::from(core.0)];
                to.message_arrived(CoreId(from as u8), message);
                resumed.extend(to.next_done().map(|done| done.continuation.frame));
            }
        }
        resumed
    }

    #[test]
    fn a_hash_of_another_core_comes_back_for_its_job_alone() {
        let throttle = Throttle::new([1; 16]);
        let mut cores = [jobs_of(0, 2), jobs_of(1, 2)];
        let [early, wanted] = [0, 1].map(|_| ask(&mut cores[0], 7, address(1, 1), "ada"));
        assert_eq!(carry(&mut cores), []);
        // The first is being computed when its session gives it up and asks for another.
        let (waiting, _) = cores[1].next_hash(&throttle, NOW, true).unwrap();
        cores[0].abandon(early);
        cores[1].computed(waiting, JobResult::Wrong);
        assert_eq!(carry(&mut cores), [], "nobody waits for that");
        let (waiting, _) = cores[1].next_hash(&throttle, NOW, true).unwrap();
        cores[1].computed(waiting, JobResult::Wrong);
        assert_eq!(carry(&mut cores), [FrameId::new(7, 0)]);
        assert!(cores[0].take_result(early).is_none());
        assert!(cores[0].take_result(wanted).is_some());
        let unwanted = ask(&mut cores[0], 7, address(1, 1), "ada");
        carry(&mut cores);
        cores[0].abandon(unwanted);
        carry(&mut cores);
        assert!(cores[1].next_hash(&throttle, NOW, true).is_none(), "it is not computed");
        assert!(cores[0].away.is_empty() && cores[0].results.is_empty());
    }
}
