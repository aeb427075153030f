//! Password hashes: one at a time, on a core that has the time, and in an order that is fair.
//!
//! A hash takes some 20 ms of a core and cannot be cut. A job owns what it needs, so it is computed
//! on any core: where there are several, never on the first one, which the disk and often the
//! network card depend on. The result goes to the session that asked, by the frame of its
//! connection.
//!
//! - A client that has not failed comes before those that have, from wherever they come
//!   (`mail::Throttle::guilt`); every fourth turn goes to the job that waits longest, so that each
//!   has its turn.
//! - After a hash a core rests from hashing as long as the hash took, unless it has nothing else to
//!   do. So hashes take half of a busy core's time at most.
//!
//! Invariants:
//! - A session has one job at most. A result is given for the number of its job, so it is never
//!   taken for another's.
//! - A job whose session is gone is not computed, unless it is being computed already.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use machine::{CoreId, Instant};
use mail::Throttle;
use tasks::FrameId;

/// Of so many turns of the hasher one goes to the job that waits longest.
const TURNS_PER_OLDEST: u32 = 4;

/// Names a job among those that a core has asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HashNumber(u64);

/// What is to be computed.
pub(crate) enum HashTask {
    /// Whether this is the password that the hash was made of.
    Check { password: Vec<u8>, hash: String },
    /// Nothing, for as long: nobody has this password.
    Spend { password: Vec<u8> },
    /// The hash of a new password.
    Make { password: Vec<u8>, salt: [u8; mail::SALT_BYTES] },
}

/// What came of it.
pub(crate) enum HashResult {
    /// The password is the one that the hash was made of.
    Right {
        /// What was asked about.
        password: Vec<u8>,
        hash: String,
    },
    Wrong,
    Made(String),
}

/// For which client a hash is computed.
pub(crate) struct Applicant {
    pub(crate) address: IpAddr,
    /// The account's name, if failures of this client count.
    pub(crate) name: Option<String>,
}

/// Who waits for a hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    number: HashNumber,
    /// The session.
    frame: FrameId,
    /// The core that asks; `None`: this one.
    core: Option<CoreId>,
}

/// A hash to be computed.
pub(crate) struct HashJob {
    waiting: Waiting,
    applicant: Applicant,
    task: HashTask,
}

/// What cores tell each other of hashes.
pub(crate) enum HashMessage {
    Asked(Box<HashJob>),
    /// The session that waits for it is gone.
    Unwanted(HashNumber),
    Computed(HashNumber, FrameId, Box<HashResult>),
}

/// The hashes of one core: those that it computes, and those that it waits for.
pub(crate) struct Hashing {
    own: CoreId,
    cores: u8,
    next_number: u64,
    /// In the order in which they came.
    queue: Vec<HashJob>,
    turns: u32,
    rests_until: Instant,
    /// Jobs that other cores compute for this one.
    away: BTreeMap<HashNumber, CoreId>,
    results: BTreeMap<HashNumber, HashResult>,
    messages: VecDeque<(CoreId, HashMessage)>,
}

impl Hashing {
    pub(crate) fn new(own: CoreId, cores: u8) -> Hashing {
        Hashing {
            own,
            cores,
            next_number: 0,
            queue: Vec::new(),
            turns: 0,
            rests_until: Instant::START,
            away: BTreeMap::new(),
            results: BTreeMap::new(),
            messages: VecDeque::new(),
        }
    }

    /// Asks for a hash. The session of `frame` is resumed when its result is there.
    pub(crate) fn ask(&mut self, frame: FrameId, applicant: Applicant, task: HashTask) -> HashNumber {
        let number = HashNumber(self.next_number);
        self.next_number += 1;
        let core = self.least_busy();
        if core == self.own {
            self.queue.push(HashJob { waiting: Waiting { number, frame, core: None }, applicant, task });
        } else {
            self.away.insert(number, core);
            let job = HashJob { waiting: Waiting { number, frame, core: Some(self.own) }, applicant, task };
            self.messages.push_back((core, HashMessage::Asked(Box::new(job))));
        }
        number
    }

    /// The core that computes the next job: the one with the fewest of this core's, and not the
    /// first of several.
    fn least_busy(&self) -> CoreId {
        let others = (u8::from(self.cores > 1)..self.cores).map(CoreId);
        let load = |core: &CoreId| match *core == self.own {
            true => self.queue.len(),
            false => self.away.values().filter(|away| *away == core).count(),
        };
        // Of several that are as busy it is this one, or another each time.
        let turn = |core: &CoreId| (self.next_number + u64::from(core.0)) % u64::from(self.cores);
        others.min_by_key(|core| (load(core), *core != self.own, turn(core))).unwrap_or(self.own)
    }

    /// Nobody waits for the job's result any more.
    pub(crate) fn abandon(&mut self, number: HashNumber) {
        self.queue.retain(|job| job.waiting.core.is_some() || job.waiting.number != number);
        self.results.remove(&number);
        if let Some(core) = self.away.remove(&number) {
            self.messages.push_back((core, HashMessage::Unwanted(number)));
        }
    }

    /// The job's result, if it is there.
    pub(crate) fn take_result(&mut self, number: HashNumber) -> Option<HashResult> {
        self.results.remove(&number)
    }

    /// Another core tells something. The session returned is to be resumed: its result is there.
    pub(crate) fn message_arrived(&mut self, from: CoreId, message: HashMessage) -> Option<FrameId> {
        match message {
            HashMessage::Asked(job) => self.queue.push(*job),
            HashMessage::Unwanted(number) => {
                self.queue.retain(|job| job.waiting.core != Some(from) || job.waiting.number != number);
            }
            HashMessage::Computed(number, frame, result) => {
                // A result that nobody waits for any more is not kept.
                self.away.remove(&number)?;
                self.results.insert(number, *result);
                return Some(frame);
            }
        }
        None
    }

    /// What other cores are to be told next.
    pub(crate) fn next_message(&mut self) -> Option<(CoreId, HashMessage)> {
        self.messages.pop_front()
    }

    /// The job whose turn it is, if one may be computed now. `is_quiet`: the core has nothing else
    /// to do.
    pub(crate) fn next_job(
        &mut self,
        throttle: &Throttle,
        now: Instant,
        is_quiet: bool,
    ) -> Option<(Waiting, HashTask)> {
        if self.queue.is_empty() || now < self.rests_until && !is_quiet {
            return None;
        }
        self.turns = self.turns.wrapping_add(1);
        let guilt = |job: &HashJob| match &job.applicant.name {
            Some(name) => throttle.guilt(job.applicant.address, name, now),
            None => 0,
        };
        let place = match self.turns % TURNS_PER_OLDEST {
            0 => 0,
            _ => self.queue.iter().enumerate().min_by_key(|(place, job)| (guilt(job), *place))?.0,
        };
        let HashJob { waiting, task, .. } = self.queue.remove(place);
        Some((waiting, task))
    }

    /// The job is computed, which took from `began` to `ended`. The session returned is to be
    /// resumed.
    pub(crate) fn computed(
        &mut self,
        waiting: Waiting,
        result: HashResult,
        (began, ended): (Instant, Instant),
    ) -> Option<FrameId> {
        self.rests_until = ended + ended.since(began);
        let Waiting { number, frame, core } = waiting;
        match core {
            None => {
                self.results.insert(number, result);
                Some(frame)
            }
            Some(core) => {
                let computed = HashMessage::Computed(number, frame, Box::new(result));
                self.messages.push_back((core, computed));
                None
            }
        }
    }

    /// When the next job may be computed, if there is one.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.rests_until)
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
    fn ask(hashing: &mut Hashing, index: u32, address: IpAddr, name: &str) -> HashNumber {
        let applicant = Applicant { address, name: Some(name.to_string()) };
        hashing.ask(FrameId::new(index, 0), applicant, HashTask::Spend { password: Vec::new() })
    }

    /// Computes a job, and says whose it was.
    fn compute(hashing: &mut Hashing, throttle: &Throttle) -> Option<usize> {
        let (waiting, _) = hashing.next_job(throttle, NOW, true)?;
        hashing.computed(waiting, HashResult::Wrong, (NOW, NOW)).map(FrameId::index)
    }

    /// Many clients of one network fail at one account; returns what is known of that, and their
    /// jobs.
    fn flood(hashing: &mut Hashing) -> Throttle {
        let mut throttle = Throttle::new([1; 16]);
        for host in 0..100 {
            throttle.failure_known(address(1, host), "ada", NOW);
            ask(hashing, u32::from(host), address(1, host), "ada");
        }
        throttle
    }

    #[test]
    fn a_client_without_failures_is_not_behind_a_flood() {
        let mut hashing = Hashing::new(CoreId(0), 1);
        let throttle = flood(&mut hashing);
        ask(&mut hashing, 200, address(2, 1), "grace");
        ask(&mut hashing, 201, address(3, 1), "ada");
        let turns: Vec<usize> = (0..4).filter_map(|_| compute(&mut hashing, &throttle)).collect();
        assert_eq!(turns, [200, 201, 0, 1], "other networks come first, and one account's failures count little");
    }

    #[test]
    fn every_fourth_hash_is_the_one_that_waits_longest() {
        let mut hashing = Hashing::new(CoreId(0), 1);
        let throttle = flood(&mut hashing);
        let mut turns = Vec::new();
        for index in 200..208 {
            ask(&mut hashing, index, address(2, index as u8), "grace");
            turns.extend(compute(&mut hashing, &throttle));
        }
        assert_eq!(turns, [200, 201, 202, 0, 203, 204, 205, 1]);
    }

    #[test]
    fn a_busy_core_hashes_half_of_its_time() {
        let mut hashing = Hashing::new(CoreId(0), 1);
        let throttle = flood(&mut hashing);
        let (mut now, mut hashed) = (NOW, Micros(0));
        let end = NOW + Micros::from_secs(1);
        while now < end {
            match hashing.next_job(&throttle, now, false) {
                Some((waiting, _)) => {
                    let began = now;
                    now = now + HASH;
                    hashed = Micros(hashed.0 + HASH.0);
                    hashing.computed(waiting, HashResult::Wrong, (began, now));
                }
                None => now = now + Micros::from_millis(1),
            }
        }
        assert_eq!(hashed, Micros::from_millis(500));
        assert!(hashing.next_job(&throttle, now, true).is_some(), "an idle core does not rest");
    }

    #[test]
    fn a_core_says_when_it_has_rested() {
        let mut hashing = Hashing::new(CoreId(0), 1);
        assert_eq!(hashing.next_deadline(), None);
        let throttle = flood(&mut hashing);
        let (waiting, _) = hashing.next_job(&throttle, NOW, false).unwrap();
        hashing.computed(waiting, HashResult::Wrong, (NOW, NOW + HASH));
        assert_eq!(hashing.next_deadline(), Some(NOW + HASH + HASH));
    }

    /// The cores that compute `count` hashes which this one asks for.
    fn cores_asked(own: u8, cores: u8, count: u32) -> Vec<(usize, usize)> {
        let mut hashing = Hashing::new(CoreId(own), cores);
        for index in 0..count {
            ask(&mut hashing, index, address(1, 1), "ada");
        }
        let mut computed: BTreeMap<usize, usize> = BTreeMap::new();
        while let Some((core, _)) = hashing.next_message() {
            *computed.entry(core.0.into()).or_default() += 1;
        }
        if !hashing.queue.is_empty() {
            computed.insert(own.into(), hashing.queue.len());
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

    /// Carries what two cores tell each other, and says which sessions of the first are resumed.
    fn carry(cores: &mut [Hashing; 2]) -> Vec<FrameId> {
        let mut resumed = Vec::new();
        for from in [0, 1] {
            while let Some((core, message)) = cores[from].next_message() {
                resumed.extend(cores[usize::from(core.0)].message_arrived(CoreId(from as u8), message));
            }
        }
        resumed
    }

    #[test]
    fn a_hash_of_another_core_comes_back_for_its_job_alone() {
        let throttle = Throttle::new([1; 16]);
        let mut cores = [Hashing::new(CoreId(0), 2), Hashing::new(CoreId(1), 2)];
        let [early, wanted] = [0, 1].map(|_| ask(&mut cores[0], 7, address(1, 1), "ada"));
        assert_eq!(carry(&mut cores), []);
        // The first is being computed when its session gives it up and asks for another.
        let (waiting, _) = cores[1].next_job(&throttle, NOW, true).unwrap();
        cores[0].abandon(early);
        assert_eq!(cores[1].computed(waiting, HashResult::Wrong, (NOW, NOW)), None);
        assert_eq!(carry(&mut cores), [], "nobody waits for that");
        let (waiting, _) = cores[1].next_job(&throttle, NOW, true).unwrap();
        assert_eq!(cores[1].computed(waiting, HashResult::Wrong, (NOW, NOW)), None);
        assert_eq!(carry(&mut cores), [FrameId::new(7, 0)]);
        assert!(cores[0].take_result(early).is_none());
        assert!(cores[0].take_result(wanted).is_some());
        let unwanted = ask(&mut cores[0], 7, address(1, 1), "ada");
        carry(&mut cores);
        cores[0].abandon(unwanted);
        carry(&mut cores);
        assert!(cores[1].next_job(&throttle, NOW, true).is_none(), "it is not computed");
        assert!(cores[0].away.is_empty() && cores[0].results.is_empty());
    }
}
