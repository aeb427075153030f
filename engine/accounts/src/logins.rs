//! Logins: a client sends a name and a proof, and the answer follows in a later turn.
//!
//! A password hash costs about 20 ms and cannot be interrupted. So it is a job that another core
//! may compute (crate `compute`). A core computes at most one hash per turn, after all other work
//! of the turn. A password that was right within the last hour needs no hash. A SCRAM proof needs
//! no password hash either: the client bears that cost, and this server only computes a few hashes
//! of a hundred bytes. The throttle delays the answer to a failed login, but not the answer to a
//! successful login. All protocols share this code: this file begins, decides and ends an attempt,
//! and the session only reports the result.
//!
//! A new account has no password until the setup of accounts has made it (`passwords`). Its logins
//! are refused without a check, and do not count as failures.
//!
//! An unknown name, or an account without a verifier, gets the same answers as any other name
//! ([`Verifier::for_unknown_name`]).

use alloc::collections::VecDeque;
use alloc::string::String;
use core::net::IpAddr;

use compute::{Applicant, Compute, HashTask, JobNumber, JobResult};
use configuration::{Access, PASSWORD_BYTES_MAX};
use connections::{Caller, Connections};
use machine::{Instant, Micros, Turn};
use mail::{FailedLogin, PasswordMark, Throttle, VerifiedLogins};
use sasl::{Credentials, Nonces, Proof, Puzzle, ScramProof, ServerSignature, Verifier};
use shards::ShardedStore;
use store::AccountId;
use tasks::{Continuation, FrameId, Subsystem};

use crate::directory::{Directory, LoginAccount};

tasks::points! {
    /// The wait points of sessions that check a password.
    pub(crate) enum LoginWaitPoint of Subsystem::Auth;
    /// The hash is computed.
    Hashed,
}

/// The continuation of a session in this frame that waits for a password hash.
pub fn hashed(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: LoginWaitPoint::Hashed.entry() }
}

/// The bytes to which a name is cut until a login is decided. A password is cut to one byte more.
/// Names and passwords of accounts are shorter, so truncation never makes a wrong value right.
const WORD_BYTES_MAX: usize = 1024;

const _: () = assert!(PASSWORD_BYTES_MAX < WORD_BYTES_MAX);

/// The most failures that wait until they are sent to other cores. If more wait, the next failures
/// are not shared.
const FAILURES_MAX: usize = 1024;

/// A login that waits for its decision or its answer.
pub struct LoginAttempt {
    login: LoginAccount,
    proof: Option<ScramProof>,
    /// The length of the password in bytes. The password is kept until its hash is known.
    password_bytes: usize,
    peer: IpAddr,
    throttled: Throttled,
    state: AttemptState,
    /// The server signature for a client that has proved its password.
    signature: Option<ServerSignature>,
}

/// Whether failures of this client count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Throttled {
    Yes,
    /// The configuration exempts the client's address.
    No,
}

/// The state of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AttemptState {
    /// The password is being hashed, or waits to be hashed.
    Hashing(JobNumber),
    /// The proof will be checked in the attempt's turn.
    Proving,
    /// The password was known to be right on arrival. The mark identifies the account's password at
    /// that time.
    Verified(AccountId, PasswordMark),
    /// The attempt succeeded. The operation that the client logs in for may still take time.
    Granted,
    /// The client's address has too many attempts in progress.
    TooMany,
    /// The account is new, and its password is not made yet.
    NotReady,
    /// The attempt failed, and the answer is delayed.
    Refused,
}

/// The decision about an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The attempt succeeded.
    Granted(AccountId),
    /// The attempt failed, and the client is told at once.
    Refused,
    /// The attempt failed, and the client is told at the deadline of its connection.
    HeldBack,
    /// The client's address has too many attempts in progress: the attempt was not checked.
    TooMany,
    /// The account is new, and its password is not made yet: the attempt was not checked.
    NotReady,
}

/// The result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoginDecision {
    /// Success, to be told at once.
    Granted(AccountId),
    /// Failure, to be told after this delay.
    Refused(Micros),
}

/// The parts of a core that a login attempt uses in addition to [`Logins`].
pub struct LoginContext<'a> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// The connections, including the one of the attempt.
    pub connections: &'a mut Connections,
    /// The accounts.
    pub store: &'a ShardedStore,
    /// Addresses and their accounts.
    pub directory: &'a Directory,
    /// The job queue for hashes.
    pub compute: &'a mut Compute,
}

/// The state of logins on a core.
pub struct Logins {
    access: Access,
    throttle: Throttle,
    verified: VerifiedLogins,
    nonces: Nonces,
    under_way: usize,
    /// Failures that other cores have not been told of. `None` if there is no other core.
    failures: Option<VecDeque<FailedLogin>>,
}

impl LoginAttempt {
    /// The bytes of memory that the attempt takes besides its own size.
    pub fn kept_bytes(&self) -> usize {
        self.login.name.len() + self.password_bytes
    }

    /// The server signature for a client that has proved its password.
    pub fn signature(&self) -> Option<ServerSignature> {
        self.signature
    }

    /// Whether the attempt failed and its answer is delayed.
    pub fn is_held_back(&self) -> bool {
        self.state == AttemptState::Refused
    }

    /// Whether the attempt succeeded and its operation is not complete yet.
    pub fn is_granted(&self) -> bool {
        self.state == AttemptState::Granted
    }

    /// The account that the attempt is for, if the account exists.
    pub fn account(&self) -> Option<AccountId> {
        self.login.account
    }
}

impl Logins {
    /// `cores`: the number of cores of the machine.
    pub fn new(cores: u8, access: Access, keys: [[u8; 16]; 2], nonces: Nonces) -> Logins {
        let [throttle, verified] = keys;
        Logins {
            access,
            throttle: Throttle::new(throttle),
            verified: VerifiedLogins::new(verified),
            nonces,
            under_way: 0,
            failures: (cores > 1).then(VecDeque::new),
        }
    }

    /// Counts an attempt as in progress. Returns false if its address has too many attempts. In
    /// this case the attempt is refused without a check.
    fn count_attempt(&mut self, peer: IpAddr, throttled: Throttled, now: Instant) -> bool {
        self.under_way += 1;
        throttled == Throttled::No || self.throttle.login_begins(peer, now)
    }

    /// The access rules of the configuration, by client address.
    #[inline]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The throttle with the known failures.
    pub fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// The verdict on an attempt that succeeded for the account `granted`. `None`: it failed.
    fn verdict(
        &mut self,
        attempt: &LoginAttempt,
        granted: Option<AccountId>,
        now: Instant,
    ) -> LoginDecision {
        match granted {
            Some(account) => LoginDecision::Granted(account),
            None if attempt.throttled == Throttled::No => LoginDecision::Refused(Micros(0)),
            None => {
                if let Some(failures) =
                    self.failures.as_mut().filter(|failures| failures.len() < FAILURES_MAX)
                {
                    failures.push_back(FailedLogin {
                        peer: attempt.peer,
                        name: attempt.login.name.clone(),
                    });
                }
                LoginDecision::Refused(self.throttle.login_failed(
                    attempt.peer,
                    &attempt.login.name,
                    now,
                ))
            }
        }
    }

    /// Whether there is a failure to tell other cores.
    pub fn has_failures(&self) -> bool {
        self.failures.as_ref().is_some_and(|failures| !failures.is_empty())
    }

    /// The next failure to tell other cores.
    pub fn next_failure(&mut self) -> Option<FailedLogin> {
        self.failures.as_mut()?.pop_front()
    }

    /// Counts a login that failed on another core.
    pub fn failed_elsewhere(&mut self, failure: &FailedLogin, now: Instant) {
        self.throttle.failure_known(failure.peer, &failure.name, now);
    }

    /// Removes an attempt that was answered, or that has lost its connection.
    pub fn end(&mut self, attempt: &LoginAttempt, now: Instant) {
        self.under_way -= 1;
        let is_undecided_or_right = match attempt.state {
            AttemptState::Hashing(_)
            | AttemptState::Proving
            | AttemptState::Verified(..)
            | AttemptState::NotReady
            | AttemptState::Granted => true,
            AttemptState::TooMany | AttemptState::Refused => false,
        };
        if attempt.throttled == Throttled::Yes && is_undecided_or_right {
            self.throttle.login_ended(attempt.peer, now);
        }
    }

    /// The number of attempts in progress.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Salt for a new password.
    pub fn salt(&mut self) -> [u8; sasl::SALT_BYTES] {
        self.nonces.salt()
    }

    /// An unpredictable value that was never used before.
    pub fn draw_nonce(&mut self) -> String {
        self.nonces.draw()
    }
}

/// Login attempts: the session that owns an attempt begins, decides and ends it.
impl Logins {
    /// The SCRAM challenge for a client that wants to prove the password of `name`.
    pub fn puzzle(&mut self, name: &str, directory: &Directory, store: &ShardedStore) -> Puzzle {
        let login = directory.login(store, name);
        let nonce = self.draw_nonce();
        verifier(&login, store).puzzle(nonce)
    }

    /// Begins an attempt with the credentials of a client. The decision follows in a later turn of
    /// the caller's session.
    pub fn begin(
        &mut self,
        credentials: Credentials<'_>,
        caller: Caller,
        cx: &mut LoginContext<'_>,
    ) -> LoginAttempt {
        let throttled = match self.access.is_unthrottled(caller.address) {
            true => Throttled::No,
            false => Throttled::Yes,
        };
        let name = credentials.name;
        let name = name.get(..name.floor_char_boundary(WORD_BYTES_MAX)).unwrap_or_default();
        let login = cx.directory.login(cx.store, name);
        let (mut proof, mut password_bytes, frame) = (None, 0, caller.connection.0);
        let state = match credentials.proof {
            _ if !self.count_attempt(caller.address, throttled, cx.turn.now) => {
                AttemptState::TooMany
            }
            _ if is_new(&login, cx) => AttemptState::NotReady,
            Proof::Scram(scram) => {
                proof = Some(scram);
                AttemptState::Proving
            }
            Proof::Password(password) => {
                let password = password.get(..=WORD_BYTES_MAX).unwrap_or(password);
                password_bytes = password.len();
                self.check_password(&login, password, throttled, (caller, cx))
            }
        };
        if !matches!(state, AttemptState::Hashing(_)) {
            cx.connections.resume(frame);
        }
        LoginAttempt {
            login,
            proof,
            password_bytes,
            peer: caller.address,
            throttled,
            state,
            signature: None,
        }
    }

    /// Requests the hash that decides a password, unless the password is known to be right already.
    fn check_password(
        &mut self,
        login: &LoginAccount,
        password: &[u8],
        throttled: Throttled,
        (caller, cx): (Caller, &mut LoginContext<'_>),
    ) -> AttemptState {
        let known = login.account.and_then(|account| cx.store.account(account));
        // An account without a password costs as much as an unknown name.
        let task = match known.filter(|known| !known.password_hash.is_empty()) {
            Some(known) if self.verified.contains(known.password_hash, password, cx.turn.now) => {
                return AttemptState::Verified(known.id, PasswordMark::of(known.password_hash));
            }
            Some(known) => {
                HashTask::Check { password: password.into(), hash: known.password_hash.into() }
            }
            None => HashTask::Spend { password: password.into() },
        };
        let name = (throttled == Throttled::Yes).then(|| login.name.clone());
        let applicant = Applicant { address: caller.address, name };
        AttemptState::Hashing(cx.compute.ask_hash(hashed(caller.connection.0), applicant, task))
    }

    /// The account that a computed hash grants access to. `None`: the password is wrong, or has
    /// been changed in the meantime.
    fn account_by_hash(
        &mut self,
        login: &LoginAccount,
        result: &JobResult,
        cx: &LoginContext<'_>,
    ) -> Option<AccountId> {
        let JobResult::Right { password, hash } = result else { return None };
        let known = cx.store.account(login.account?).filter(|known| known.password_hash == hash)?;
        self.verified.insert(hash, password, cx.turn.now);
        Some(known.id)
    }

    /// Decides an attempt in its turn. `None`: its hash is not computed yet, or it was decided
    /// before.
    pub fn decide(
        &mut self,
        attempt: &mut LoginAttempt,
        caller: Caller,
        cx: &mut LoginContext<'_>,
    ) -> Option<Decision> {
        let now = cx.turn.now;
        let verdict = match attempt.state {
            AttemptState::Refused | AttemptState::Granted => return None,
            AttemptState::TooMany => return Some(Decision::TooMany),
            AttemptState::NotReady => return Some(Decision::NotReady),
            AttemptState::Verified(account, mark) if has_password(account, mark, cx.store) => {
                LoginDecision::Granted(account)
            }
            // The password has changed since the attempt began.
            AttemptState::Verified(..) => self.verdict(attempt, None, now),
            AttemptState::Hashing(number) => {
                let result = cx.compute.take_result(number)?;
                let granted = self.account_by_hash(&attempt.login, &result, cx);
                self.verdict(attempt, granted, now)
            }
            AttemptState::Proving => {
                let granted = check_proof(attempt, cx.store);
                self.verdict(attempt, granted, now)
            }
        };
        Some(match verdict {
            LoginDecision::Granted(account) => {
                attempt.state = AttemptState::Granted;
                Decision::Granted(account)
            }
            LoginDecision::Refused(Micros(0)) => Decision::Refused,
            LoginDecision::Refused(delay) => {
                attempt.state = AttemptState::Refused;
                cx.connections.set_deadline(now, caller.connection, Some(delay));
                Decision::HeldBack
            }
        })
    }

    /// Ends an attempt that no longer needs an answer.
    pub fn abandon(&mut self, attempt: &LoginAttempt, now: Instant, compute: &mut Compute) {
        self.end(attempt, now);
        if let AttemptState::Hashing(number) = attempt.state {
            compute.abandon(number);
        }
    }
}

/// Whether the account exists and has no password yet. An account that is not in the configuration
/// never gets one, so it does not count as new.
fn is_new(login: &LoginAccount, cx: &LoginContext<'_>) -> bool {
    let known = login.account.and_then(|account| cx.store.account(account));
    known.is_some_and(|known| {
        known.password_hash.is_empty() && cx.directory.is_configured(known.address)
    })
}

/// The verifier for proofs of `login`.
fn verifier(login: &LoginAccount, store: &ShardedStore) -> Verifier {
    let unknown = Verifier::for_unknown_name(&store.secret_of_unknown_names(), &login.name);
    let known = login.account.and_then(|account| store.account(account));
    known.and_then(|known| Verifier::parse(known.verifier)).unwrap_or(unknown)
}

/// Whether the account still has this password.
fn has_password(account: AccountId, mark: PasswordMark, store: &ShardedStore) -> bool {
    store.account(account).is_some_and(|known| PasswordMark::of(known.password_hash) == mark)
}

/// Checks the attempt's proof. Returns the account that it grants access to, and stores the
/// signature for the client.
fn check_proof(attempt: &mut LoginAttempt, store: &ShardedStore) -> Option<AccountId> {
    let proof = attempt.proof.as_ref()?;
    attempt.signature = verifier(&attempt.login, store).check(proof);
    attempt.login.account.filter(|_| attempt.signature.is_some())
}
