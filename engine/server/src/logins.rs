//! Logins: a name and what proves it arrive, and an answer follows in a later turn.
//!
//! A password hash costs some 20 ms and can't be cut, so whoever needs one passes a gate, first come first served, and one
//! hash is computed a turn, after all that the turn had to say. A password that was right within the last hour needs none, nor does a proof of SCRAM: that costs the client what it spares us, and here a few hashes of a
//! hundred bytes. The answer to a failed login waits as long as the throttle says; the answer to a right one waits for nothing. That is so whatever the protocol: an attempt is begun,
//! decided and ended here, and its session only says what came of it.
//!
//! Of a name that nobody has, and of an account that has no verifier, the same is said and done as of any other ([`Verifier::of_nobody`]).

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use machine::{Instant, Micros};
use mail::{Hasher, Throttle, VerifiedLogins};
use sasl::{Credentials, Nonces, Proof, Puzzle, ScramProof, Signature, Verifier};
use store::AccountId;

use crate::common::{Common, HASHER};
use crate::directory::Login;
use crate::session::Caller;

/// A login that waits for its turn, or for its answer.
pub(crate) struct Attempt {
    login: Login,
    heard: Heard,
    peer: IpAddr,
    throttled: Throttled,
    pub(crate) state: AttemptState,
    /// What the client is to hear that was let in by a proof.
    signature: Option<Signature>,
}

/// What the client has said to prove who it is.
enum Heard {
    Password(Vec<u8>),
    Scram(ScramProof),
}

/// Whether failures of this client count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Throttled {
    Yes,
    /// The configuration exempts the client's address.
    No,
}

/// How far an attempt has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AttemptState {
    /// It waits for the hasher, or owns it.
    Hashing,
    /// Its proof is looked at when its turn has come.
    Proving,
    /// Its password was known to be right when it came.
    Verified(AccountId),
    /// It is let in, and what it was for may take its time.
    Granted,
    /// Its address has too many under way.
    TooMany,
    /// It failed, and the answer is delayed.
    Refused,
}

/// What comes of an attempt when its turn has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// It is let in.
    Granted(AccountId),
    /// It is not.
    Refused,
    /// It is not, and is told so when the deadline has passed that was set for it.
    HeldBack,
    /// Its address has too many under way: it was not looked at.
    TooMany,
}

/// What comes of a hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// Let in, at once.
    Granted(AccountId),
    /// Not let in, to be told after so long.
    Refused(Micros),
}

/// The hasher, and what is remembered of logins.
pub(crate) struct Logins {
    hasher: Hasher,
    throttle: Throttle,
    verified: VerifiedLogins,
    nonces: Nonces,
    under_way: usize,
    /// Failures that other cores have not been told of; not there where there is no other core.
    failures: Option<VecDeque<Failure>>,
}

/// A login that failed, for the throttles of other cores.
pub(crate) struct Failure {
    peer: IpAddr,
    name: String,
}

impl Attempt {
    fn new(login: Login, proof: Proof<'_>, peer: IpAddr, throttled: Throttled) -> Attempt {
        let (heard, state) = match proof {
            Proof::Password(password) => (Heard::Password(password.into()), AttemptState::Hashing),
            Proof::Scram(proof) => (Heard::Scram(proof), AttemptState::Proving),
        };
        Attempt { login, heard, peer, throttled, state, signature: None }
    }

    /// What the client is to hear that was let in by a proof.
    pub(crate) fn signature(&self) -> Option<Signature> {
        self.signature
    }

    /// Whether it is let in, and what it was for is not there yet.
    pub(crate) fn is_granted(&self) -> bool {
        self.state == AttemptState::Granted
    }

    /// The account that it is for, if that exists.
    pub(crate) fn account(&self) -> Option<AccountId> {
        self.login.account
    }
}

impl Logins {
    /// `cores`: how many the machine has.
    pub(crate) fn new(cores: u8, hasher: Hasher, keys: [[u8; 16]; 2], nonces: Nonces) -> Logins {
        let [throttle, verified] = keys;
        Logins {
            hasher,
            throttle: Throttle::new(throttle),
            verified: VerifiedLogins::new(verified),
            nonces,
            under_way: 0,
            failures: (cores > 1).then(VecDeque::new),
        }
    }

    /// Counts an attempt as under way. False: its address has too many, and it is refused unlooked at.
    fn begin(&mut self, attempt: &Attempt, now: Instant) -> bool {
        self.under_way += 1;
        attempt.throttled == Throttled::No || self.throttle.login_begins(attempt.peer, now)
    }

    /// Whether it is a password that is known to be right without a hash.
    fn is_verified(&self, attempt: &Attempt, hash: &str, now: Instant) -> bool {
        matches!(&attempt.heard, Heard::Password(password) if self.verified.contains(hash, password, now))
    }

    /// Computes the one hash that decides a password: whom it lets in. `known` is the account and that account's password hash.
    fn verify(&mut self, attempt: &Attempt, known: Option<(AccountId, &str)>, now: Instant) -> Option<AccountId> {
        let Heard::Password(password) = &attempt.heard else { return None };
        let Some((account, hash)) = known else {
            self.hasher.spend(password);
            return None;
        };
        let is_right = self.hasher.verify(password, hash) == Ok(true);
        if is_right {
            self.verified.insert(hash, password, now);
        }
        is_right.then_some(account)
    }

    /// What comes of an attempt that lets this one in, or nobody.
    fn verdict(&mut self, attempt: &Attempt, granted: Option<AccountId>, now: Instant) -> Verdict {
        match granted {
            Some(account) => Verdict::Granted(account),
            None if attempt.throttled == Throttled::No => Verdict::Refused(Micros(0)),
            None => {
                if let Some(failures) = &mut self.failures {
                    failures.push_back(Failure { peer: attempt.peer, name: attempt.login.name.clone() });
                }
                Verdict::Refused(self.throttle.login_failed(attempt.peer, &attempt.login.name, now))
            }
        }
    }

    /// The next failure that other cores are to be told of.
    pub(crate) fn next_failure(&mut self) -> Option<Failure> {
        self.failures.as_mut()?.pop_front()
    }

    /// A login has failed on another core.
    pub(crate) fn failed_elsewhere(&mut self, failure: &Failure, now: Instant) {
        self.throttle.failure_known(failure.peer, &failure.name, now);
    }

    /// The attempt has been answered, or its connection is gone.
    pub(crate) fn end(&mut self, attempt: &Attempt, now: Instant) {
        self.under_way -= 1;
        let is_undecided_or_right = match attempt.state {
            AttemptState::Hashing | AttemptState::Proving | AttemptState::Verified(_) | AttemptState::Granted => true,
            AttemptState::TooMany | AttemptState::Refused => false,
        };
        if attempt.throttled == Throttled::Yes && is_undecided_or_right {
            self.throttle.login_ended(attempt.peer, now);
        }
    }

    /// Attempts that have begun and not ended.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Makes room for checking passwords against all of `hashes`.
    pub(crate) fn make_room_for<'a>(&mut self, hashes: impl Iterator<Item = &'a str>) {
        self.hasher.make_room_for(hashes);
    }

    /// Salt for a new password.
    pub(crate) fn salt(&mut self) -> [u8; sasl::SALT_BYTES] {
        self.nonces.salt()
    }

    /// What was never said before, and nobody can guess.
    pub(crate) fn draw_nonce(&mut self) -> String {
        self.nonces.draw()
    }

    /// Whether a password of the configuration's is the one that `hash` was made of: it costs what a login costs.
    pub(crate) fn is_of(&mut self, password: &str, hash: &str) -> bool {
        self.hasher.make_room_for(core::iter::once(hash));
        self.hasher.verify(password.as_bytes(), hash) == Ok(true)
    }

    /// The hash of a new password.
    pub(crate) fn hash(&mut self, password: &str, salt: [u8; mail::SALT_BYTES]) -> Option<String> {
        self.hasher.hash(password.as_bytes(), salt).ok()
    }
}

impl Common {
    /// What a client is asked that wants to prove that it knows the password of `name`.
    pub(crate) fn puzzle(&mut self, name: &str) -> Puzzle {
        let login = self.directory.login(&self.store, name);
        let nonce = self.logins.draw_nonce();
        self.verifier(&login).puzzle(nonce)
    }

    /// What proofs of `login` are checked against.
    fn verifier(&self, login: &Login) -> Verifier {
        let nobody = Verifier::of_nobody(&self.store.secret_of_nobody(), &login.name);
        let known = login.account.and_then(|account| self.store.account(account));
        known.and_then(|known| Verifier::parse(known.verifier)).unwrap_or(nobody)
    }

    /// A client has said who it is. What comes of that is decided in a later turn, which is given to the caller's session.
    pub(crate) fn login_begins(&mut self, credentials: Credentials<'_>, caller: Caller) -> Attempt {
        let throttled = match self.access.is_unthrottled(caller.address) {
            true => Throttled::No,
            false => Throttled::Yes,
        };
        let login = self.directory.login(&self.store, credentials.name);
        let mut attempt = Attempt::new(login, credentials.proof, caller.address, throttled);
        if !self.logins.begin(&attempt, self.now) {
            attempt.state = AttemptState::TooMany;
        } else if let Some(account) = attempt.account().filter(|_| self.is_verified(&attempt)) {
            attempt.state = AttemptState::Verified(account);
        }
        match attempt.state {
            AttemptState::Hashing => self.enter(HASHER, caller.connection.0),
            _ => self.ready.resume(caller.connection.0),
        }
        attempt
    }

    /// The attempt's turn has come, if it still waits for one: it has the hasher, or needs none.
    pub(crate) fn login_decided(&mut self, attempt: &mut Attempt, caller: Caller) -> Option<Decision> {
        let frame = caller.connection.0;
        let verdict = match attempt.state {
            AttemptState::Refused | AttemptState::Granted => return None,
            AttemptState::Hashing if !self.has_entered(HASHER, frame) => return None,
            AttemptState::TooMany => return Some(Decision::TooMany),
            AttemptState::Verified(account) if self.is_verified(attempt) => Verdict::Granted(account),
            // The password has changed since, or nobody remembers that it was right: now a hash decides.
            AttemptState::Verified(_) => {
                attempt.state = AttemptState::Hashing;
                self.enter(HASHER, frame);
                return None;
            }
            AttemptState::Hashing => {
                let known = attempt.account().and_then(|id| Some((id, self.store.account(id)?.password_hash)));
                let granted = self.logins.verify(attempt, known, self.now);
                self.leave(HASHER, frame);
                self.logins.verdict(attempt, granted, self.now)
            }
            AttemptState::Proving => {
                let granted = self.look_at_proof(attempt);
                self.logins.verdict(attempt, granted, self.now)
            }
        };
        Some(match verdict {
            Verdict::Granted(account) => {
                attempt.state = AttemptState::Granted;
                Decision::Granted(account)
            }
            Verdict::Refused(Micros(0)) => Decision::Refused,
            Verdict::Refused(delay) => {
                attempt.state = AttemptState::Refused;
                self.set_deadline(caller.connection, Some(delay));
                Decision::HeldBack
            }
        })
    }

    /// Whether its password is known to be right without a hash.
    fn is_verified(&self, attempt: &Attempt) -> bool {
        let known = attempt.account().and_then(|account| self.store.account(account));
        known.is_some_and(|known| self.logins.is_verified(attempt, known.password_hash, self.now))
    }

    /// Whom the attempt's proof lets in; what the client is told then is noted.
    fn look_at_proof(&self, attempt: &mut Attempt) -> Option<AccountId> {
        let Heard::Scram(proof) = &attempt.heard else { return None };
        attempt.signature = self.verifier(&attempt.login).check(proof);
        attempt.account().filter(|_| attempt.signature.is_some())
    }

    /// Nobody waits for the attempt's answer any more.
    pub(crate) fn login_abandoned(&mut self, attempt: &Attempt, caller: Caller) {
        self.logins.end(attempt, self.now);
        self.leave(HASHER, caller.connection.0);
    }
}
