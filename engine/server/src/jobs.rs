//! Jobs: password hashes and signatures. Each takes some milliseconds of a core and cannot be cut.
//! A core computes one at a time, when it has the time, in a fair order.
//!
//! A job owns its input, so any core can compute it. The first of several cores computes none: the
//! disk and often the network card depend on that core. The result goes to the waiter that asked.
//!
//! - Signatures are computed in the order in which they were asked for.
//! - Hashes of clients without failures come before hashes of clients with failures, from wherever
//!   they come (`mail::Throttle::guilt`). Every fourth turn goes to the hash that has waited
//!   longest, so that each has its turn.
//! - After a hash a core rests from hashing as long as the hash took, unless it has nothing else to
//!   do. So hashes take half of a busy core's time at most.
//!
//! Invariants:
//! - A waiter has one job at most. A result carries the number of its job, so it is never taken for
//!   the result of another.
//! - A session's job is not computed once the session is gone, unless it is being computed already.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use machine::{CoreId, Instant};
use mail::Throttle;
use tasks::FrameId;

/// One hash in so many is the one that has waited longest.
const TURNS_PER_OLDEST: u32 = 4;

/// Names a job among those that a core has asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct JobNumber(u64);

/// The work of a [`HashJob`].
pub(crate) enum HashTask {
    /// Whether this is the password that the hash was made of.
    Check { password: Vec<u8>, hash: String },
    /// Nothing, but it takes as long as a check: no account has this password.
    Spend { password: Vec<u8> },
    /// The hash of a new password.
    Make { password: Vec<u8>, salt: [u8; mail::SALT_BYTES] },
}

/// The result of a job.
pub(crate) enum JobResult {
    /// The password is the one that the hash was made of.
    Right {
        /// The password and the hash that were checked.
        password: Vec<u8>,
        hash: String,
    },
    Wrong,
    Made(String),
    /// The signature; `None`: the key cannot make it.
    Signed(Option<Vec<u8>>),
}

/// The client that a hash is computed for.
pub(crate) struct Applicant {
    pub(crate) address: IpAddr,
    /// The account's name, if failures of this client count.
    pub(crate) name: Option<String>,
}

/// The task that is resumed when a job is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiter {
    /// The session of a connection.
    Session(FrameId),
    /// A request handler of the webmail.
    Clerk(FrameId),
    /// A delivery attempt.
    Courier(FrameId),
}

/// The job and the core that a result is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    number: JobNumber,
    waiter: Waiter,
    /// The core that asks; `None`: this one.
    core: Option<CoreId>,
}

/// A hash to be computed.
pub(crate) struct HashJob {
    waiting: Waiting,
    applicant: Applicant,
    task: HashTask,
}

/// A signature to be computed.
pub(crate) struct SignatureJob {
    pub(crate) waiting: Waiting,
    /// The bytes that it covers.
    pub(crate) signed: Vec<u8>,
    /// The key's number among those of the machine.
    pub(crate) key: usize,
}

/// A message of one core to another about a job.
pub(crate) enum JobMessage {
    HashAsked(Box<HashJob>),
    SignatureAsked(Box<SignatureJob>),
    /// The waiter is gone.
    Unwanted(JobNumber),
    Computed(JobNumber, Waiter, Box<JobResult>),
}

/// The jobs of one core: those that it computes, and those that it waits for.
pub(crate) struct Jobs {
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
}

impl Jobs {
    pub(crate) fn new(own: CoreId, cores: u8) -> Jobs {
        Jobs {
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
        }
    }

    /// Asks for a hash. The session of `frame` is resumed when the result is there.
    pub(crate) fn ask_hash(&mut self, frame: FrameId, applicant: Applicant, task: HashTask) -> JobNumber {
        let (core, waiting) = self.place(Waiter::Session(frame));
        let job = HashJob { waiting, applicant, task };
        match core {
            None => self.hashes.push(job),
            Some(core) => self.messages.push_back((core, JobMessage::HashAsked(Box::new(job)))),
        }
        waiting.number
    }

    /// Asks for a signature over `signed`. `key`: the key's number. The waiter is resumed when the
    /// signature is there.
    pub(crate) fn ask_signature(&mut self, waiter: Waiter, signed: Vec<u8>, key: usize) -> JobNumber {
        let (core, waiting) = self.place(waiter);
        let job = SignatureJob { waiting, signed, key };
        match core {
            None => self.signatures.push_back(job),
            Some(core) => self.messages.push_back((core, JobMessage::SignatureAsked(Box::new(job)))),
        }
        waiting.number
    }

    /// The core that computes the next job (`None`: this one), and where the result belongs.
    fn place(&mut self, waiter: Waiter) -> (Option<CoreId>, Waiting) {
        let number = JobNumber(self.next_number);
        self.next_number += 1;
        match self.least_busy() {
            core if core == self.own => (None, Waiting { number, waiter, core: None }),
            core => {
                self.away.insert(number, core);
                (Some(core), Waiting { number, waiter, core: Some(self.own) })
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
    pub(crate) fn abandon(&mut self, number: JobNumber) {
        self.remove(|waiting| waiting.core.is_none() && waiting.number == number);
        self.results.remove(&number);
        if let Some(core) = self.away.remove(&number) {
            self.messages.push_back((core, JobMessage::Unwanted(number)));
        }
    }

    /// The job's result, if it is there.
    pub(crate) fn take_result(&mut self, number: JobNumber) -> Option<JobResult> {
        self.results.remove(&number)
    }

    /// Takes a message from another core. A returned waiter is to be resumed: its result is there.
    pub(crate) fn message_arrived(&mut self, from: CoreId, message: JobMessage) -> Option<(Waiter, JobNumber)> {
        match message {
            JobMessage::HashAsked(job) => self.hashes.push(*job),
            JobMessage::SignatureAsked(job) => self.signatures.push_back(*job),
            JobMessage::Unwanted(number) => {
                self.remove(|waiting| waiting.core == Some(from) && waiting.number == number);
            }
            JobMessage::Computed(number, waiter, result) => {
                // The result of an abandoned job is not kept.
                self.away.remove(&number)?;
                self.results.insert(number, *result);
                return Some((waiter, number));
            }
        }
        None
    }

    /// The next message to another core.
    pub(crate) fn next_message(&mut self) -> Option<(CoreId, JobMessage)> {
        self.messages.pop_front()
    }

    /// Whether this core has nothing to compute.
    pub(crate) fn is_idle(&self) -> bool {
        self.hashes.is_empty() && self.signatures.is_empty()
    }

    /// The next signature to compute.
    pub(crate) fn next_signature(&mut self) -> Option<SignatureJob> {
        self.signatures.pop_front()
    }

    /// The next hash to compute, if one may be computed now. `is_quiet`: the core has nothing else
    /// to do.
    pub(crate) fn next_hash(
        &mut self,
        throttle: &Throttle,
        now: Instant,
        is_quiet: bool,
    ) -> Option<(Waiting, HashTask)> {
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
    pub(crate) fn rest(&mut self, began: Instant, ended: Instant) {
        self.rests_until = ended + ended.since(began);
    }

    /// Takes the result of a job that this core has computed. A returned waiter is to be resumed.
    pub(crate) fn computed(&mut self, waiting: Waiting, result: JobResult) -> Option<(Waiter, JobNumber)> {
        let Waiting { number, waiter, core } = waiting;
        match core {
            None => {
                self.results.insert(number, result);
                Some((waiter, number))
            }
            Some(core) => {
                let computed = JobMessage::Computed(number, waiter, Box::new(result));
                self.messages.push_back((core, computed));
                None
            }
        }
    }

    /// When the next hash may be computed, if there is one.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (!self.hashes.is_empty()).then_some(self.rests_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use core::net::Ipv4Addr;
    use machine::Micros;

    const NOW: Instant = Instant::START;
    const HASH: Micros = Micros::from_millis(20);

    fn address(network: u8, host: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, network, host))
    }

    /// A session at `address` has given a password for an account of `name`.
    fn ask(jobs: &mut Jobs, index: u32, address: IpAddr, name: &str) -> JobNumber {
        let applicant = Applicant { address, name: Some(name.to_string()) };
        jobs.ask_hash(FrameId::new(index, 0), applicant, HashTask::Spend { password: Vec::new() })
    }

    fn session(done: Option<(Waiter, JobNumber)>) -> Option<FrameId> {
        match done?.0 {
            Waiter::Session(frame) => Some(frame),
            Waiter::Clerk(_) | Waiter::Courier(_) => None,
        }
    }

    /// Computes a hash, and returns the index of the session that asked for it.
    fn compute(jobs: &mut Jobs, throttle: &Throttle) -> Option<usize> {
        let (waiting, _) = jobs.next_hash(throttle, NOW, true)?;
        session(jobs.computed(waiting, JobResult::Wrong)).map(FrameId::index)
    }

    /// Many clients of one network fail to log in to one account, and each has a job. Returns the
    /// throttle that knows of the failures.
    fn flood(jobs: &mut Jobs) -> Throttle {
        let mut throttle = Throttle::new([1; 16]);
        for host in 0..100 {
            throttle.failure_known(address(1, host), "ada", NOW);
            ask(jobs, u32::from(host), address(1, host), "ada");
        }
        throttle
    }

    #[test]
    fn a_client_without_failures_is_not_behind_a_flood() {
        let mut jobs = Jobs::new(CoreId(0), 1);
        let throttle = flood(&mut jobs);
        ask(&mut jobs, 200, address(2, 1), "grace");
        ask(&mut jobs, 201, address(3, 1), "ada");
        let turns: Vec<usize> = (0..4).filter_map(|_| compute(&mut jobs, &throttle)).collect();
        assert_eq!(turns, [200, 201, 0, 1], "other networks come first, and one account's failures count little");
    }

    #[test]
    fn every_fourth_hash_is_the_one_that_waits_longest() {
        let mut jobs = Jobs::new(CoreId(0), 1);
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
        let mut jobs = Jobs::new(CoreId(0), 1);
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
        let mut jobs = Jobs::new(CoreId(0), 1);
        assert_eq!(jobs.next_deadline(), None);
        let throttle = flood(&mut jobs);
        let (waiting, _) = jobs.next_hash(&throttle, NOW, false).unwrap();
        jobs.rest(NOW, NOW + HASH);
        jobs.computed(waiting, JobResult::Wrong);
        assert_eq!(jobs.next_deadline(), Some(NOW + HASH + HASH));
    }

    /// Core `own` asks for `count` hashes. Returns each core that computes some, and how many.
    fn cores_asked(own: u8, cores: u8, count: u32) -> Vec<(usize, usize)> {
        let mut jobs = Jobs::new(CoreId(own), cores);
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
        let waiter = Waiter::Courier(FrameId::new(3, 0));
        let mut cores = [Jobs::new(CoreId(0), 2), Jobs::new(CoreId(1), 2)];
        let number = cores[0].ask_signature(waiter, b"signed".to_vec(), 1);
        assert!(cores[0].next_signature().is_none());
        let (core, message) = cores[0].next_message().unwrap();
        assert_eq!((core, cores[1].message_arrived(CoreId(0), message)), (CoreId(1), None));
        let job = cores[1].next_signature().unwrap();
        assert_eq!((job.signed.as_slice(), job.key), (&b"signed"[..], 1));
        assert_eq!(cores[1].computed(job.waiting, JobResult::Signed(None)), None);
        let (core, message) = cores[1].next_message().unwrap();
        assert_eq!((core, cores[0].message_arrived(CoreId(1), message)), (CoreId(0), Some((waiter, number))));
        assert!(matches!(cores[0].take_result(number), Some(JobResult::Signed(None))));
    }

    #[test]
    fn a_signature_does_not_wait_behind_hashes() {
        let mut jobs = Jobs::new(CoreId(0), 1);
        flood(&mut jobs);
        jobs.ask_signature(Waiter::Clerk(FrameId::new(1, 0)), Vec::new(), 0);
        assert!(jobs.next_signature().is_some());
    }

    /// Delivers the messages of two cores to each other. Returns the sessions that are resumed.
    fn carry(cores: &mut [Jobs; 2]) -> Vec<FrameId> {
        let mut resumed = Vec::new();
        for from in [0, 1] {
            while let Some((core, message)) = cores[from].next_message() {
                let done = cores[usize::from(core.0)].message_arrived(CoreId(from as u8), message);
                resumed.extend(session(done));
            }
        }
        resumed
    }

    #[test]
    fn a_hash_of_another_core_comes_back_for_its_job_alone() {
        let throttle = Throttle::new([1; 16]);
        let mut cores = [Jobs::new(CoreId(0), 2), Jobs::new(CoreId(1), 2)];
        let [early, wanted] = [0, 1].map(|_| ask(&mut cores[0], 7, address(1, 1), "ada"));
        assert_eq!(carry(&mut cores), []);
        // The first is being computed when its session gives it up and asks for another.
        let (waiting, _) = cores[1].next_hash(&throttle, NOW, true).unwrap();
        cores[0].abandon(early);
        assert_eq!(cores[1].computed(waiting, JobResult::Wrong), None);
        assert_eq!(carry(&mut cores), [], "nobody waits for that");
        let (waiting, _) = cores[1].next_hash(&throttle, NOW, true).unwrap();
        assert_eq!(cores[1].computed(waiting, JobResult::Wrong), None);
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
