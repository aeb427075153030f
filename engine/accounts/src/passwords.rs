//! Makes and checks the plain passwords of the configuration, while clients are served.
//!
//! Each core does this for its own accounts, one after the other:
//!
//! - An account without a password hash is new. Its hash and its verifier for SCRAM are made. Until
//!   then its logins are refused with the advice to try again. These accounts come first.
//! - The password of every other account is checked against the hash of the last password that the
//!   account got from the configuration. If the hash is of another password, the configured
//!   password replaces that of the account, and all sessions of the account end. So an edited
//!   password takes effect, and one that was not edited never undoes a change that the owner has
//!   made.
//!
//! The check costs a hash for each account at each start. A fast hash of the configured password,
//! kept beside the slow one, would be cheaper. But the key of the fast hash would be on the disk
//! too. So an attacker that has the disk could guess passwords at the speed of the fast hash. So
//! only the slow hash is kept.
//!
//! A hash takes some 20 ms. The crate `compute` computes it in a fair order with the hashes of
//! clients, and each core has only one hash of this kind in progress. The verifier is derived in
//! steps, one a turn. A power cut loses nothing: the next start finds the accounts without a hash.
//!
//! A core is ready to listen when its new accounts are ready, or after 20 seconds. All cores begin
//! to listen when all are ready (crate `shards`).

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use compute::{Applicant, HashTask, JobNumber, JobResult};
use configuration::{Configuration, Password, User};
use machine::{CoreId, Entropy, Instant, Micros};
use sasl::Derivation;
use shards::ShardedStore;
use store::{AccountId, NewPassword, Outcome, Refusal};

use crate::differences::configured_hash;
use crate::lines::{self, Lines};
use crate::provisioning::{SetupContext, password_set};
use crate::wait_points::{self, NO_FRAME};

/// The longest time that a core is not ready to listen because its new accounts are not ready.
const NOT_LISTENING_MAX: Micros = Micros::from_secs(20);

/// The interval of retries while the store refuses a password.
const AGAIN: Micros = Micros::from_secs(1);

/// The intervals at which new accounts are counted, and at which their number is printed.
const COUNTED_EACH: Micros = Micros::from_secs(1);
const PRINTED_EACH: Micros = Micros::from_secs(30);

/// The configured passwords of the accounts of a core.
#[derive(Default)]
pub(crate) struct PasswordSetup {
    /// The accounts with passwords that were not made or checked yet. The last one is in progress,
    /// or it is the next. The new accounts come last.
    waiting: Vec<ConfiguredAccount>,
    /// The number of accounts in `waiting` without a password hash.
    new: usize,
    stage: PasswordStage,
    /// The time at which the store is asked again, after it has refused a password.
    again_at: Option<Instant>,
    is_refusal_told: bool,
    /// The time at which the core is ready to listen at the latest.
    listens_at: Instant,
    set: Lines,
    progress: SetupProgress,
}

/// An account with a plain password in the configuration.
struct ConfiguredAccount {
    /// The place of the user in the configuration.
    user: usize,
    account: AccountId,
}

/// The stages of one account.
#[derive(Default)]
enum PasswordStage {
    /// No account is in progress.
    #[default]
    Idle,
    /// The configured password is being checked.
    Checking(JobNumber),
    /// The hash of the configured password is being computed.
    Hashing(JobNumber),
    /// The hash is known, and the verifier is being derived.
    Deriving(String, Box<Derivation>),
    /// The hash and the verifier are to be stored.
    Made(MadePassword),
    /// The store makes the password durable.
    Storing(MadePassword),
}

struct MadePassword {
    hash: String,
    verifier: String,
}

impl PasswordSetup {
    /// Begins with the accounts of this core, after all accounts were created.
    pub(crate) fn begin(&mut self, configuration: &Configuration, cx: &mut SetupContext<'_>) {
        let store = &*cx.store;
        let (mut new, mut known) = (Vec::new(), Vec::new());
        for (user, account, state) in plain_accounts(configuration, store) {
            if store.owner(account) == store.core() {
                let list = if state == PasswordState::New { &mut new } else { &mut known };
                list.push(ConfiguredAccount { user, account });
            }
        }
        self.new = new.len();
        self.waiting = known;
        self.waiting.extend(new.into_iter().rev());
        self.listens_at = cx.turn.now + NOT_LISTENING_MAX;
        if store.core() == CoreId::FIRST {
            self.progress = SetupProgress {
                accounts: new_accounts(configuration, store),
                ready: None,
                counted_at: cx.turn.now,
                printed_at: self.listens_at,
            };
        }
    }

    /// Whether this core is ready to listen: its new accounts are ready, or they take too long.
    pub(crate) fn may_listen(&self, now: Instant) -> bool {
        self.new == 0 || now >= self.listens_at
    }

    /// Whether all passwords of this core's accounts are made and checked. On the first core, the
    /// new accounts of all other cores must be ready too.
    pub(crate) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.progress.accounts == 0
    }

    /// Whether the next turn has work that no event announces.
    pub(crate) fn is_to_go_on(&self) -> bool {
        match self.stage {
            PasswordStage::Idle => !self.waiting.is_empty(),
            PasswordStage::Deriving(..) => true,
            PasswordStage::Made(_) => self.again_at.is_none(),
            PasswordStage::Checking(_) | PasswordStage::Hashing(_) | PasswordStage::Storing(_) => {
                false
            }
        }
    }

    /// The time at which a turn is needed even without an event.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        let counts_at = (self.progress.accounts > 0).then_some(self.progress.counted_at);
        let listens_at = Some(self.listens_at).filter(|at| self.new > 0 && *at > now);
        let all = [counts_at, listens_at, self.again_at];
        all.into_iter().flatten().min().unwrap_or(Instant::NEVER)
    }

    /// Does the next step.
    pub(crate) fn go_on(
        &mut self,
        configuration: &Configuration,
        cx: &mut SetupContext<'_>,
        entropy: &mut dyn Entropy,
    ) {
        self.progress.count(configuration, cx);
        if self.again_at.is_some_and(|at| cx.turn.now < at) {
            return;
        }
        self.again_at = None;
        let Some(ConfiguredAccount { user, account }) = self.waiting.last() else { return };
        let Some(User { password: Password::Plain(password), .. }) = configuration.users.get(*user)
        else {
            unreachable!("a user without a plain password")
        };
        let (account, password) = (*account, password.as_bytes());
        self.stage = match core::mem::take(&mut self.stage) {
            PasswordStage::Idle => begin_account(account, password, cx, entropy),
            PasswordStage::Checking(number) => match cx.compute.take_result(number) {
                None => PasswordStage::Checking(number),
                Some(JobResult::Right { .. }) => {
                    self.waiting.pop();
                    PasswordStage::Idle
                }
                Some(_) => begin_hash(password, cx, entropy),
            },
            PasswordStage::Hashing(number) => match cx.compute.take_result(number) {
                None => PasswordStage::Hashing(number),
                Some(JobResult::Made(hash)) => {
                    let mut salt = [0; sasl::SALT_BYTES];
                    entropy.random(&mut salt);
                    PasswordStage::Deriving(hash, Box::new(Derivation::begin(password, salt)))
                }
                Some(_) => unreachable!("the result of a hash job is a hash"),
            },
            PasswordStage::Deriving(hash, mut derivation) => match derivation.step() {
                None => PasswordStage::Deriving(hash, derivation),
                Some(verifier) => {
                    PasswordStage::Made(MadePassword { hash, verifier: verifier.to_string() })
                }
            },
            PasswordStage::Made(made) => self.store(account, made, cx),
            PasswordStage::Storing(made) => PasswordStage::Storing(made),
        };
        if self.waiting.is_empty() {
            core::mem::take(&mut self.set).end("accounts", cx.console);
        }
    }

    fn store(
        &mut self,
        account: AccountId,
        made: MadePassword,
        cx: &mut SetupContext<'_>,
    ) -> PasswordStage {
        let new = NewPassword { hash: &made.hash, verifier: &made.verifier, replaced: "" };
        match cx.store.own.store.set_password(account, &new, wait_points::password_set()) {
            Ok(()) => PasswordStage::Storing(made),
            Err(refusal) => self.refused(made, refusal, cx),
        }
    }

    /// Processes the outcome of storing a password. The sessions of the account must be ended
    /// before any further input is handled ([`ShardedStore::next_outdated`]).
    pub(crate) fn woken(&mut self, outcome: Outcome, cx: &mut SetupContext<'_>) {
        let PasswordStage::Storing(made) = core::mem::take(&mut self.stage) else {
            unreachable!("an outcome of a password that is not being stored")
        };
        if let Outcome::Refused(refusal) = outcome {
            self.stage = self.refused(made, refusal, cx);
            return;
        }
        let Some(ConfiguredAccount { account, .. }) = self.waiting.pop() else {
            unreachable!("a password of no account")
        };
        cx.store.tell_password(account, NO_FRAME);
        // New accounts are the last ones in the list.
        if self.new > 0 {
            self.new -= 1;
        } else if let Some(known) = cx.store.account(account) {
            self.set.add(|| password_set(known.address));
            self.set.print(cx.console);
        }
    }

    /// The store has refused a password. It is asked again until it takes the password.
    fn refused(
        &mut self,
        made: MadePassword,
        refusal: Refusal,
        cx: &mut SetupContext<'_>,
    ) -> PasswordStage {
        if refusal != Refusal::Busy {
            self.again_at = Some(cx.turn.now + AGAIN);
            if !core::mem::replace(&mut self.is_refusal_told, true) {
                cx.console.print(format_args!(
                    "accounts: passwords cannot be set now: {}; trying again every second",
                    lines::why(refusal)
                ));
            }
        }
        PasswordStage::Made(made)
    }
}

/// Begins to check the password of an account, or to make its hash.
fn begin_account(
    account: AccountId,
    password: &[u8],
    cx: &mut SetupContext<'_>,
    entropy: &mut dyn Entropy,
) -> PasswordStage {
    let Some(known) = cx.store.own.store.account(account) else {
        unreachable!("an account that is gone")
    };
    match configured_hash(&known) {
        "" => begin_hash(password, cx, entropy),
        hash => {
            let task = HashTask::Check { password: password.into(), hash: hash.into() };
            PasswordStage::Checking(cx.compute.ask_hash(
                wait_points::password_hashed(),
                applicant(),
                task,
            ))
        }
    }
}

fn begin_hash(
    password: &[u8],
    cx: &mut SetupContext<'_>,
    entropy: &mut dyn Entropy,
) -> PasswordStage {
    let mut salt = [0; mail::SALT_BYTES];
    entropy.random(&mut salt);
    let task = HashTask::Make { password: password.into(), salt };
    PasswordStage::Hashing(cx.compute.ask_hash(wait_points::password_hashed(), applicant(), task))
}

/// The applicant of these hashes. It never counts as guilty of login failures.
fn applicant() -> Applicant {
    Applicant { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), name: None }
}

/// Whether an account has a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PasswordState {
    /// The account was created, and its password was not made yet.
    New,
    Set,
}

/// The accounts with a plain password in the configuration, with the places of their users.
fn plain_accounts<'s>(
    configuration: &'s Configuration,
    store: &'s ShardedStore,
) -> impl Iterator<Item = (usize, AccountId, PasswordState)> + 's {
    configuration.users.iter().enumerate().filter_map(|(place, user)| {
        let Password::Plain(_) = user.password else { return None };
        let known = store.account(store.find(user.address.as_str())?)?;
        let state = match known.password_hash {
            "" => PasswordState::New,
            _ => PasswordState::Set,
        };
        (known.address == user.address.as_str()).then_some((place, known.id, state))
    })
}

/// The number of accounts of all cores without a password.
fn new_accounts(configuration: &Configuration, store: &ShardedStore) -> usize {
    let accounts = plain_accounts(configuration, store);
    accounts.filter(|(_, _, state)| *state == PasswordState::New).count()
}

/// Counts the new accounts of the machine, on its first core.
#[derive(Default)]
struct SetupProgress {
    /// The number of new accounts at the start. 0 once all are ready.
    accounts: usize,
    /// The number of them that were ready when the console was last told. `None` if it was not.
    ready: Option<usize>,
    /// The times of the next count and of the next line.
    counted_at: Instant,
    printed_at: Instant,
}

impl SetupProgress {
    fn count(&mut self, configuration: &Configuration, cx: &mut SetupContext<'_>) {
        let now = cx.turn.now;
        if self.accounts == 0 || now < self.counted_at {
            return;
        }
        self.counted_at = now + COUNTED_EACH;
        let all = self.accounts;
        let ready = all - new_accounts(configuration, cx.store).min(all);
        if ready == all {
            if self.ready.is_some() {
                cx.console.print(format_args!("accounts: all {all} new accounts can log in"));
            }
            self.accounts = 0;
        } else if now >= self.printed_at && self.ready != Some(ready) {
            cx.console.print(format_args!(
                "accounts: {ready} of {all} new accounts can log in; all of them get mail"
            ));
            self.ready = Some(ready);
            self.printed_at = now + PRINTED_EACH;
        }
    }
}
