//! Creates the configured accounts that do not exist, before any client is served. Also gives an
//! existing account the password of the configuration, if that has changed there.
//!
//! If the owner has changed the password, it stays valid as long as the configuration has the
//! password that was replaced. To check a plain one costs a hash, one a turn. So this is checked
//! only after such a change, to keep the start short.
//!
//! A plain password becomes an argon2id hash, which costs a turn of some 20 ms, and a SCRAM
//! verifier, which is derived in steps, one a turn (crate `sasl`). A configured password hash gives
//! no verifier.
//!
//! If disk writes fail meanwhile, they are retried every second for a minute, and nothing is served
//! before. Otherwise a password that the configuration has replaced would still be valid. Mail to a
//! new account would bounce as soon as the disk works, until the next start. After the minute the
//! existing mail counts for more: the machine serves without the account.
//!
//! Invariant: `again_at` is set only while the last user of `users`, or the account for
//! certificates, waits for the disk.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use certificates::Certificates;
use compute::Compute;
use configuration::{Password, User};
use machine::{Entropy, Instant, Micros};
use sasl::Derivation;
use store::{AccountInfo, NewAccount, NewPassword, Outcome, Refusal, State, WhyReadOnly};
use tasks::{Continuation, FrameId, Subsystem};

use crate::parts::Parts;

tasks::points! {
    /// The wait point at the store while accounts are made.
    pub(crate) enum AccountsWaitPoint of Subsystem::Accounts;
    /// An account has been made.
    Made,
}

/// The frame of the engine itself, which no connection has.
const ENGINE: FrameId = FrameId::new(u32::MAX, 0);

/// The interval and the number of retries while accounts are made.
const AGAIN: Micros = Micros::from_secs(1);
const TRIES_MAX: u32 = 60;

/// The accounts of the configuration, until they are made.
#[derive(Default)]
pub(crate) struct Making {
    /// The accounts that do not exist or were not checked, the next one last.
    users: Vec<User>,
    deriving: Option<Box<Deriving>>,
    /// The account that the store makes, unless it is the one for certificates.
    asked: Option<User>,
    /// Whether the store was asked for the account for certificates. That is tried once.
    has_asked_for_certificates: bool,
    /// When the disk is tried again, and how often it was tried.
    again_at: Option<Instant>,
    tries: u32,
}

/// An account with a verifier that is being derived.
struct Deriving {
    user: User,
    password_hash: String,
    verifier: Derivation,
}

/// The progress of the accounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Made {
    /// There is more to do.
    Some,
    /// The store makes an account.
    Asked,
    /// All accounts exist.
    All,
}

impl Making {
    /// `users`: in the order of the configuration.
    pub(crate) fn of(users: &[User]) -> Making {
        Making { users: users.iter().rev().cloned().collect(), ..Making::default() }
    }

    /// Whether no wait for the disk is needed.
    pub(crate) fn is_to_go_on(&self, now: Instant) -> bool {
        self.again_at.is_none_or(|at| at <= now)
    }

    /// When the disk is tried again.
    pub(crate) fn again_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// Continues with the current account, or begins the next one.
    #[inline(never)]
    pub(crate) fn go_on(&mut self, parts: &mut Parts, entropy: &mut dyn Entropy) -> Made {
        if let Some(deriving) = &mut self.deriving {
            let verifier = deriving.verifier.step();
            let Some((verifier, deriving)) = verifier.and_then(|made| Some((made, self.deriving.take()?))) else {
                return Made::Some;
            };
            let Deriving { user, password_hash, .. } = *deriving;
            return self.make_account(user, &password_hash, &verifier.to_string(), parts);
        }
        if self.awaits_disk(parts) {
            return Made::Some;
        }
        while let Some(user) = self.users.pop() {
            let account = parts.store.own.store.find(user.address.as_str());
            let Some(known) = account.and_then(|account| parts.store.own.store.account(account)) else {
                return self.begin_account(user, parts, entropy);
            };
            let has_replaced = !known.replaced().is_empty();
            if !is_as_configured(&known, &user.password, &mut parts.compute) {
                return self.begin_account(user, parts, entropy);
            }
            if has_replaced {
                return Made::Some;
            }
        }
        if !self.has_asked_for_certificates && Certificates::wants_account(&parts.connections, &parts.store) {
            self.has_asked_for_certificates = true;
            return self.make_account_of_certificates(parts);
        }
        Made::All
    }

    #[cold]
    #[inline(never)]
    fn make_account_of_certificates(&mut self, parts: &mut Parts) -> Made {
        let continuation = Continuation { frame: ENGINE, entry: AccountsWaitPoint::Made.entry() };
        let account = NewAccount { address: certificates::ACCOUNT, aliases: &[], password_hash: "", verifier: "" };
        match parts.store.own.store.create_account(&account, parts.turn.wall, continuation) {
            Ok(_) => Made::Asked,
            Err(refusal) => self.refused(refusal, parts),
        }
    }

    /// Whether accounts wait for the disk. Retries when it is time.
    fn awaits_disk(&mut self, parts: &mut Parts) -> bool {
        let Some(at) = self.again_at else { return false };
        if parts.turn.now < at {
            return true;
        }
        self.tries += 1;
        let store = &mut parts.store.own.store;
        let fails = store.state() != State::Serving && self.tries < TRIES_MAX;
        if fails {
            store.retry();
        }
        self.again_at = fails.then_some(parts.turn.now + AGAIN);
        fails
    }

    fn begin_account(&mut self, user: User, parts: &mut Parts, entropy: &mut dyn Entropy) -> Made {
        match &user.password {
            Password::Plain(password) => {
                let (mut salt, mut verifier_salt) = ([0; mail::SALT_BYTES], [0; sasl::SALT_BYTES]);
                entropy.random(&mut salt);
                entropy.random(&mut verifier_salt);
                let password_hash = parts.compute.hash_now(password.as_bytes(), salt);
                let verifier = Derivation::begin(password.as_bytes(), verifier_salt);
                self.deriving = Some(Box::new(Deriving { user, password_hash, verifier }));
                Made::Some
            }
            Password::Argon2id(hash) => {
                let hash = hash.clone();
                self.make_account(user, &hash, "", parts)
            }
        }
    }

    fn make_account(&mut self, user: User, password_hash: &str, verifier: &str, parts: &mut Parts) -> Made {
        let aliases: Vec<&str> = user.aliases.iter().map(|alias| alias.as_str()).collect();
        let account = NewAccount { address: user.address.as_str(), aliases: &aliases, password_hash, verifier };
        let continuation = Continuation { frame: ENGINE, entry: AccountsWaitPoint::Made.entry() };
        let store = &mut parts.store.own.store;
        let made = match store.find(user.address.as_str()) {
            None => store.create_account(&account, parts.turn.wall, continuation).map(|_| ()),
            Some(id) => {
                parts
                    .console
                    .print(format_args!("store: the password of {} was set from the configuration", user.address));
                store.set_password(id, &NewPassword { hash: password_hash, verifier, replaced: "" }, continuation)
            }
        };
        self.asked = Some(user);
        match made {
            Ok(()) => Made::Asked,
            Err(refusal) => self.refused(refusal, parts),
        }
    }

    /// The store has made the account, or refused to.
    pub(crate) fn woken(&mut self, outcome: Outcome, parts: &mut Parts) {
        match outcome {
            Outcome::Refused(refusal) => _ = self.refused(refusal, parts),
            _ => self.asked = None,
        }
    }

    /// The store refuses to make the account. It is asked again if that may help.
    fn refused(&mut self, refusal: Refusal, parts: &mut Parts) -> Made {
        // After a failed flush during opening, only another start helps.
        let is_lasting = parts.store.own.store.state() == State::ReadOnly(WhyReadOnly::LastFlushFailed);
        let asked = self.asked.take();
        let address = asked.as_ref().map_or("the account for certificates", |user| user.address.as_str());
        let console = &mut parts.console;
        if refusal != Refusal::ReadOnly {
            console.print(format_args!("store: {address} cannot be set up: {refusal:?}"));
            return Made::Some;
        }
        if is_lasting || self.tries >= TRIES_MAX {
            console.print(format_args!("store: {address} cannot be set up: the disk fails; restart the server"));
            return Made::Some;
        }
        if self.tries == 0 {
            console.print(format_args!("store: {address} cannot be set up yet: the disk fails; retrying for a minute"));
        }
        match asked {
            Some(user) => self.users.push(user),
            None => self.has_asked_for_certificates = false,
        }
        self.again_at = Some(parts.turn.now + AGAIN);
        Made::Some
    }
}

/// Whether the configured password is still the one that the account was made with, or last got
/// from the configuration. Checked only as far as needed.
fn is_as_configured(known: &AccountInfo<'_>, password: &Password, compute: &mut Compute) -> bool {
    let before = if known.replaced().is_empty() { known.password_hash() } else { known.replaced() };
    match password {
        Password::Plain(_) if known.replaced().is_empty() => true,
        Password::Plain(password) => compute.is_password_of(password, before),
        Password::Argon2id(hash) => hash == before,
    }
}
