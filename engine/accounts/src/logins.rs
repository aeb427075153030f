//! Logins: a name and what proves it arrive, and an answer follows in a later turn.
//!
//! A password hash costs some 20 ms and cannot be cut, so it is a job that another core may
//! compute, one a turn and after all that the turn had to say (crate `compute`). A password that was
//! right within the last hour needs none, nor does a proof of SCRAM: that costs the client what it
//! spares us, and here a few hashes of a hundred bytes. The answer to a failed login waits as long
//! as the throttle says; the answer to a right one waits for nothing. That is so whatever the
//! protocol: an attempt is begun, decided and ended here, and its session only says what came of
//! it.
//!
//! Of a name that nobody has, and of an account that has no verifier, the same is said and done as of any other ([`Verifier::of_nobody`]).

use alloc::collections::VecDeque;
use alloc::string::String;
use core::net::IpAddr;

use compute::{Applicant, Compute, HashTask, JobNumber, JobResult};
use configuration::{Access, PASSWORD_BYTES_MAX};
use connections::{Caller, Connections};
use machine::{Instant, Micros, Turn};
use mail::{FailedLogin, PasswordMark, Throttle, VerifiedLogins};
use sasl::{Credentials, Nonces, Proof, Puzzle, ScramProof, Signature, Verifier};
use shards::Archive;
use store::AccountId;
use tasks::{Continuation, FrameId, Subsystem};

use crate::directory::{Directory, Login};

tasks::points! {
    /// What a session waits for that concerns a password.
    pub(crate) enum Point of Subsystem::Auth;
    /// Its hash is computed.
    Hashed,
}

/// The session of this frame waits for a password hash.
pub fn hashed(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: Point::Hashed.entry() }
}

/// Bytes of a name or a password that are kept until a login is decided. Accounts have shorter
/// ones, so what is cut off a longer one does not make it right.
const WORD_BYTES_MAX: usize = 1024;

const _: () = assert!(PASSWORD_BYTES_MAX < WORD_BYTES_MAX);

/// Failures that other cores have not been told of. They are not told of more.
const FAILURES_MAX: usize = 1024;

/// A login that waits for its turn, or for its answer.
pub struct Attempt {
    login: Login,
    proof: Option<ScramProof>,
    /// Bytes of its password, which is kept until its hash is known.
    password_bytes: usize,
    peer: IpAddr,
    throttled: Throttled,
    state: AttemptState,
    /// What the client is to hear that was let in by a proof.
    signature: Option<Signature>,
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
enum AttemptState {
    /// Its password is being looked at, or waits for that.
    Hashing(JobNumber),
    /// Its proof is looked at when its turn has come.
    Proving,
    /// Its password was known to be right when it came, and the account had this one then.
    Verified(AccountId, PasswordMark),
    /// It is let in, and what it was for may take its time.
    Granted,
    /// Its address has too many under way.
    TooMany,
    /// It failed, and the answer is delayed.
    Refused,
}

/// What comes of an attempt when its turn has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
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

/// The parts of a core that an attempt to log in uses beside [`Logins`].
pub struct Context<'a> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// The connections, of which one wants to log in.
    pub connections: &'a mut Connections,
    /// The accounts.
    pub store: &'a Archive,
    /// Addresses and their accounts.
    pub directory: &'a Directory,
    /// What computes hashes.
    pub compute: &'a mut Compute,
}

/// What is remembered of logins.
pub struct Logins {
    access: Access,
    throttle: Throttle,
    verified: VerifiedLogins,
    nonces: Nonces,
    under_way: usize,
    /// Failures that other cores have not been told of; not there where there is no other core.
    failures: Option<VecDeque<FailedLogin>>,
}

impl Attempt {
    /// Bytes of memory that it takes beside its own size.
    pub fn kept_bytes(&self) -> usize {
        self.login.name.len() + self.password_bytes
    }

    /// What the client is to hear that was let in by a proof.
    pub fn signature(&self) -> Option<Signature> {
        self.signature
    }

    /// Whether it has failed, and the answer is held back.
    pub fn is_held_back(&self) -> bool {
        self.state == AttemptState::Refused
    }

    /// Whether it is let in, and what it was for is not there yet.
    pub fn is_granted(&self) -> bool {
        self.state == AttemptState::Granted
    }

    /// The account that it is for, if that exists.
    pub fn account(&self) -> Option<AccountId> {
        self.login.account
    }
}

impl Logins {
    /// `cores`: how many the machine has.
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

    /// Counts an attempt as under way. False: its address has too many, and it is refused unlooked at.
    fn is_counted(&mut self, peer: IpAddr, throttled: Throttled, now: Instant) -> bool {
        self.under_way += 1;
        throttled == Throttled::No || self.throttle.login_begins(peer, now)
    }

    /// What the configuration allows clients, by their addresses.
    #[inline]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The failures that are known of.
    pub fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// What comes of an attempt that lets this one in, or nobody.
    fn verdict(&mut self, attempt: &Attempt, granted: Option<AccountId>, now: Instant) -> Verdict {
        match granted {
            Some(account) => Verdict::Granted(account),
            None if attempt.throttled == Throttled::No => Verdict::Refused(Micros(0)),
            None => {
                if let Some(failures) =
                    self.failures.as_mut().filter(|failures| failures.len() < FAILURES_MAX)
                {
                    failures.push_back(FailedLogin {
                        peer: attempt.peer,
                        name: attempt.login.name.clone(),
                    });
                }
                Verdict::Refused(self.throttle.login_failed(attempt.peer, &attempt.login.name, now))
            }
        }
    }

    /// Whether other cores are to be told of a failure.
    pub fn has_failures(&self) -> bool {
        self.failures.as_ref().is_some_and(|failures| !failures.is_empty())
    }

    /// The next failure that other cores are to be told of.
    pub fn next_failure(&mut self) -> Option<FailedLogin> {
        self.failures.as_mut()?.pop_front()
    }

    /// A login has failed on another core.
    pub fn failed_elsewhere(&mut self, failure: &FailedLogin, now: Instant) {
        self.throttle.failure_known(failure.peer, &failure.name, now);
    }

    /// The attempt has been answered, or its connection is gone.
    pub fn end(&mut self, attempt: &Attempt, now: Instant) {
        self.under_way -= 1;
        let is_undecided_or_right = match attempt.state {
            AttemptState::Hashing(_)
            | AttemptState::Proving
            | AttemptState::Verified(..)
            | AttemptState::Granted => true,
            AttemptState::TooMany | AttemptState::Refused => false,
        };
        if attempt.throttled == Throttled::Yes && is_undecided_or_right {
            self.throttle.login_ended(attempt.peer, now);
        }
    }

    /// Attempts that have begun and not ended.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Salt for a new password.
    pub fn salt(&mut self) -> [u8; sasl::SALT_BYTES] {
        self.nonces.salt()
    }

    /// What was never said before, and nobody can guess.
    pub fn draw_nonce(&mut self) -> String {
        self.nonces.draw()
    }
}

/// Attempts to log in: each is begun, decided and ended by the session that owns it.
impl Logins {
    /// What a client is asked that wants to prove that it knows the password of `name`.
    pub fn puzzle(&mut self, name: &str, directory: &Directory, store: &Archive) -> Puzzle {
        let login = directory.login(store, name);
        let nonce = self.draw_nonce();
        verifier(&login, store).puzzle(nonce)
    }

    /// A client has said who it is. What comes of that is decided in a later turn, which is given to the caller's session.
    pub fn begin(
        &mut self,
        credentials: Credentials<'_>,
        caller: Caller,
        cx: &mut Context<'_>,
    ) -> Attempt {
        let throttled = match self.access.is_unthrottled(caller.address) {
            true => Throttled::No,
            false => Throttled::Yes,
        };
        let name = credentials.name;
        let name = name.get(..name.floor_char_boundary(WORD_BYTES_MAX)).unwrap_or_default();
        let login = cx.directory.login(cx.store, name);
        let (mut proof, mut password_bytes, frame) = (None, 0, caller.connection.0);
        let state = match credentials.proof {
            _ if !self.is_counted(caller.address, throttled, cx.turn.now) => AttemptState::TooMany,
            Proof::Scram(said) => {
                proof = Some(said);
                AttemptState::Proving
            }
            Proof::Password(password) => {
                let password = password.get(..=WORD_BYTES_MAX).unwrap_or(password);
                password_bytes = password.len();
                self.look_at_password(&login, password, throttled, (caller, cx))
            }
        };
        if !matches!(state, AttemptState::Hashing(_)) {
            cx.connections.resume(frame);
        }
        Attempt {
            login,
            proof,
            password_bytes,
            peer: caller.address,
            throttled,
            state,
            signature: None,
        }
    }

    /// Asks for the hash that decides a password, if it is not known to be right without one.
    fn look_at_password(
        &mut self,
        login: &Login,
        password: &[u8],
        throttled: Throttled,
        (caller, cx): (Caller, &mut Context<'_>),
    ) -> AttemptState {
        let known = login.account.and_then(|account| cx.store.account(account));
        let task = match known {
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

    /// Which account a hash that was computed lets in. A password that was changed meanwhile is not
    /// right any more.
    fn let_in_by(
        &mut self,
        login: &Login,
        result: &JobResult,
        cx: &Context<'_>,
    ) -> Option<AccountId> {
        let JobResult::Right { password, hash } = result else { return None };
        let known = cx.store.account(login.account?).filter(|known| known.password_hash == hash)?;
        self.verified.insert(hash, password, cx.turn.now);
        Some(known.id)
    }

    /// The attempt's turn has come, if it still waits for one: its hash is computed, or it needs
    /// none.
    pub fn decide(
        &mut self,
        attempt: &mut Attempt,
        caller: Caller,
        cx: &mut Context<'_>,
    ) -> Option<Decision> {
        let now = cx.turn.now;
        let verdict = match attempt.state {
            AttemptState::Refused | AttemptState::Granted => return None,
            AttemptState::TooMany => return Some(Decision::TooMany),
            AttemptState::Verified(account, mark) if is_password(account, mark, cx.store) => {
                Verdict::Granted(account)
            }
            // The password has changed since.
            AttemptState::Verified(..) => self.verdict(attempt, None, now),
            AttemptState::Hashing(number) => {
                let result = cx.compute.take_result(number)?;
                let granted = self.let_in_by(&attempt.login, &result, cx);
                self.verdict(attempt, granted, now)
            }
            AttemptState::Proving => {
                let granted = look_at_proof(attempt, cx.store);
                self.verdict(attempt, granted, now)
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
                cx.connections.set_deadline(now, caller.connection, Some(delay));
                Decision::HeldBack
            }
        })
    }

    /// Nothing waits for the attempt's answer any more.
    pub fn abandon(&mut self, attempt: &Attempt, now: Instant, compute: &mut Compute) {
        self.end(attempt, now);
        if let AttemptState::Hashing(number) = attempt.state {
            compute.abandon(number);
        }
    }
}

/// What proofs of `login` are checked against.
fn verifier(login: &Login, store: &Archive) -> Verifier {
    let nobody = Verifier::of_nobody(&store.secret_of_nobody(), &login.name);
    let known = login.account.and_then(|account| store.account(account));
    known.and_then(|known| Verifier::parse(known.verifier)).unwrap_or(nobody)
}

/// Whether the account still has this password.
fn is_password(account: AccountId, mark: PasswordMark, store: &Archive) -> bool {
    store.account(account).is_some_and(|known| PasswordMark::of(known.password_hash) == mark)
}

/// The account that the attempt's proof lets in; what the client is told then is noted.
fn look_at_proof(attempt: &mut Attempt, store: &Archive) -> Option<AccountId> {
    let proof = attempt.proof.as_ref()?;
    attempt.signature = verifier(&attempt.login, store).check(proof);
    attempt.login.account.filter(|_| attempt.signature.is_some())
}
