//! Makes the accounts on the disk agree with the configuration, before any client is served.
//!
//! The configuration decides which accounts exist at least, their aliases, and their
//! `password_hash` (`differences`). The disk is changed to agree with the configuration, or the
//! console says which difference stays. An account with a plain password is created without a
//! password hash: it gets mail, and clients cannot log in to it yet. Its password hash is made
//! later, while clients are served (`passwords`).
//!
//! If the configuration has no accounts, the reserved account is created, which keeps the mail to
//! the administrator (`directory`).
//!
//! If disk writes fail during this time, they are retried every second for a minute, and no client
//! is served. If clients were served at once, a password hash that the configuration has replaced
//! would still be valid, and mail to a new account would bounce until the next start. After the
//! minute, access to the existing mail is more important: the machine serves without the change.
//!
//! Invariants:
//! - A stage begins when all changes of the stage before are durable or given up.
//! - An account has at most one change in flight.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use compute::Compute;
use configuration::Configuration;
use machine::{ConsoleLines, Instant, Micros, Turn};
use shards::ShardedStore;
use store::{NewAccount, NewPassword, Outcome, Refusal, State, Store, WhyReadOnly};
use tasks::{Continuation, FrameId};

use crate::differences::{AccountChange, AccountChangeKind, Differences};
use crate::lines::{self, Lines};
use crate::wait_points;

/// The most changes in flight.
const IN_FLIGHT_MAX: usize = 64;

/// The interval and the number of retries while the disk fails.
const AGAIN: Micros = Micros::from_secs(1);
const TRIES_MAX: u32 = 60;

/// The parts of a core that set up accounts.
pub struct SetupContext<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// The accounts. During provisioning the first core has all of them.
    pub store: &'c mut ShardedStore,
    /// Hashes and checks passwords.
    pub compute: &'c mut Compute,
    /// Gets a line for each problem and each change.
    pub console: &'c mut ConsoleLines,
}

/// The order of changes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum ProvisioningStage {
    /// Nothing was compared yet.
    #[default]
    Begin,
    /// Accounts lose the aliases that the configuration does not give to them.
    Losses,
    /// Accounts are created, and get new password hashes.
    Accounts,
    /// Accounts get aliases.
    Gains,
    /// The accounts without a user are created: the reserved account and the account for
    /// certificates.
    Internal,
    /// Nothing is left to change.
    Over,
}

/// The changes of accounts that the configuration wants.
#[derive(Default)]
pub(crate) struct Provisioning {
    stage: ProvisioningStage,
    /// The changes of this stage that were not requested, or that the failed disk has refused. The
    /// last one is the next.
    changes: Vec<AccountChange>,
    in_flight: BTreeMap<usize, AccountChange>,
    next_number: usize,
    /// What the changes of this stage have done.
    done: Lines,
    /// The time at which the disk is tried again. `tries` is the number of tries so far.
    again_at: Option<Instant>,
    tries: u32,
}

impl Provisioning {
    /// Whether a turn can continue. Otherwise accounts wait for the disk.
    pub(crate) fn is_to_go_on(&self, now: Instant) -> bool {
        self.in_flight.is_empty() && self.again_at.is_none_or(|at| at <= now)
    }

    /// The time at which the disk is tried again.
    pub(crate) fn again_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// Requests the next changes, or begins the next stage. Returns whether all is done: all
    /// accounts are as the configuration wants them, or were given up.
    pub(crate) fn go_on(
        &mut self,
        configuration: &Configuration,
        certificates: Option<&'static str>,
        cx: &mut SetupContext<'_>,
    ) -> bool {
        if self.awaits_disk(cx) {
            return false;
        }
        if self.changes.is_empty() && self.in_flight.is_empty() {
            self.begin_next_stage(configuration, certificates, cx);
        }
        while self.in_flight.len() < IN_FLIGHT_MAX
            && self.again_at.is_none()
            && let Some(change) = self.changes.pop()
        {
            if !self.request(change, cx) {
                break;
            }
        }
        self.stage == ProvisioningStage::Over
    }

    fn begin_next_stage(
        &mut self,
        configuration: &Configuration,
        certificates: Option<&'static str>,
        cx: &mut SetupContext<'_>,
    ) {
        core::mem::take(&mut self.done).end("changes", cx.console);
        let differences = Differences::new(configuration);
        let store = &cx.store.own.store;
        (self.stage, self.changes) = match self.stage {
            ProvisioningStage::Begin => {
                differences.print_unconfigured(store, cx.console);
                (ProvisioningStage::Losses, differences.losses(store))
            }
            ProvisioningStage::Losses => (ProvisioningStage::Accounts, differences.accounts(store)),
            ProvisioningStage::Accounts => {
                differences.print_refused_aliases(store, cx.console);
                (ProvisioningStage::Gains, differences.gains(store))
            }
            ProvisioningStage::Gains => {
                let reserved = differences.missing_reserved_account(store, cx.console);
                let addresses = certificates.map(Box::from).into_iter().chain(reserved);
                let changes = addresses.map(|address| AccountChange {
                    address,
                    kind: AccountChangeKind::Create(Vec::new(), "".into()),
                });
                (ProvisioningStage::Internal, changes.collect())
            }
            ProvisioningStage::Internal | ProvisioningStage::Over => {
                (ProvisioningStage::Over, Vec::new())
            }
        };
        self.changes.reverse();
    }

    /// Requests a change from the store. Returns false if the store can take no more now.
    fn request(&mut self, change: AccountChange, cx: &mut SetupContext<'_>) -> bool {
        match request(
            &change,
            wait_points::changed(self.next_number),
            cx.turn,
            &mut cx.store.own.store,
        ) {
            Ok(()) => {
                self.in_flight.insert(self.next_number, change);
                self.next_number += 1;
                true
            }
            Err(Refusal::Busy) => {
                self.changes.push(change);
                false
            }
            Err(refusal) => {
                self.refused(change, refusal, cx);
                true
            }
        }
    }

    /// Processes the outcome of a change. `frame`: from its continuation.
    pub(crate) fn woken(&mut self, frame: FrameId, outcome: Outcome, cx: &mut SetupContext<'_>) {
        let Some(change) = self.in_flight.remove(&frame.index()) else {
            unreachable!("an outcome of a change that is not in flight")
        };
        match outcome {
            Outcome::Refused(refusal) => self.refused(change, refusal, cx),
            _ => self.note_done(&change),
        }
    }

    fn note_done(&mut self, change: &AccountChange) {
        let address = &change.address;
        match &change.kind {
            AccountChangeKind::Aliases { lost, gained, .. } => {
                for alias in lost {
                    self.done
                        .add(|| format!("accounts: {alias} is not an alias of {address} any more"));
                }
                for alias in gained {
                    self.done
                        .add(|| format!("accounts: {alias} is an alias of {address} from now on"));
                }
            }
            AccountChangeKind::Password(..) => self.done.add(|| password_set(address)),
            AccountChangeKind::Create(..) => {}
        }
    }

    /// Whether accounts wait for the disk. Tries the disk again when it is time.
    fn awaits_disk(&mut self, cx: &mut SetupContext<'_>) -> bool {
        let Some(at) = self.again_at else { return false };
        if cx.turn.now < at || !self.in_flight.is_empty() {
            return true;
        }
        self.tries += 1;
        let store = &mut cx.store.own.store;
        let fails = store.state() != State::Serving && self.tries < TRIES_MAX;
        if fails {
            store.retry();
        }
        self.again_at = fails.then_some(cx.turn.now + AGAIN);
        fails
    }

    /// Processes a refusal of the store. Tries again later if that may help.
    fn refused(&mut self, change: AccountChange, refusal: Refusal, cx: &mut SetupContext<'_>) {
        // If the last flush during opening has failed, only a restart helps.
        let is_lasting =
            cx.store.own.store.state() == State::ReadOnly(WhyReadOnly::LastFlushFailed);
        let name = match &*change.address {
            address if address.contains('@') => address,
            _ => "the account for certificates",
        };
        if refusal != Refusal::ReadOnly {
            self.done.add(|| {
                format!(
                    "accounts: {name} cannot be set up: {}; correct this and restart the machine",
                    lines::why(refusal)
                )
            });
        } else if is_lasting || self.tries >= TRIES_MAX {
            self.done.add(|| {
                format!("store: {name} cannot be set up: the disk fails; restart the server")
            });
        } else {
            if self.tries == 0 && self.again_at.is_none() {
                cx.console.print(format_args!(
                    "store: {name} cannot be set up yet: the disk fails; retrying for a minute"
                ));
            }
            self.changes.push(change);
            self.again_at = Some(cx.turn.now + AGAIN);
        }
    }
}

/// The line for a password that was set from the configuration.
pub(crate) fn password_set(address: &str) -> String {
    format!("accounts: the password of {address} was set from the configuration")
}

fn request(
    AccountChange { address, kind }: &AccountChange,
    at: Continuation,
    turn: Turn,
    store: &mut Store,
) -> Result<(), Refusal> {
    fn texts(aliases: &[Box<str>]) -> Vec<&str> {
        aliases.iter().map(|alias| &**alias).collect()
    }
    match kind {
        AccountChangeKind::Aliases { id, aliases, .. } => {
            store.set_aliases(*id, &texts(aliases), at)
        }
        AccountChangeKind::Create(aliases, password_hash) => {
            let aliases = &texts(aliases);
            let account = NewAccount { address, aliases, password_hash, verifier: "" };
            store.create_account(&account, turn.wall, at).map(|_| ())
        }
        AccountChangeKind::Password(id, hash) => {
            store.set_password(*id, &NewPassword { hash, verifier: "", replaced: "" }, at)
        }
    }
}
