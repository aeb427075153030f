//! Making the accounts that the configuration asks for and that are not there yet, before anybody is served; and giving those that are there the password that it says, if it says another
//! than it did.
//!
//! A password that its owner has changed stays as long as the configuration says the one that he has replaced. Whether a plain one is still that costs a hash, one a turn; that is
//! asked only where the owner has changed his, since every start would take the longer.
//!
//! A plain password becomes an argon2id hash, which costs a turn of some 20 ms, and a verifier of SCRAM, which is made step by step, one a turn (crate `sasl`). Of a password hash that
//! the configuration brings no verifier can be made.
//!
//! If the disk fails writes meanwhile, the machine tries it every second, for a minute, and serves
//! nothing before. Otherwise a password that the configuration has replaced would still be valid,
//! and mail to a new account would bounce as soon as the disk works, until the next start. After
//! the minute the mail that is on the disk counts for more: the machine serves without the account.
//!
//! Invariant: `again_at` is set only while the last user of `users`, or the account for
//! certificates, waits for the disk.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use configuration::{Password, User};
use machine::{Entropy, Instant, Micros};
use sasl::Derivation;
use store::{AccountId, NewAccount, NewPassword, Outcome, Refusal, State, WhyReadOnly};
use tasks::{Continuation, Subsystem};

use crate::common::Common;
use crate::engine::Engine;
use crate::life::{ENGINE, Life};

tasks::points! {
    /// Where the engine waits for the store while it makes accounts.
    pub(crate) enum Point of Subsystem::Accounts;
    /// An account has been made.
    Made,
}

/// How often, and for how long, a disk is tried again that fails while accounts are made.
const AGAIN: Micros = Micros::from_secs(1);
const TRIES_MAX: u32 = 60;

/// The accounts that the configuration asks for, until they are made.
#[derive(Default)]
pub(crate) struct Making {
    /// Those that are not there or were not looked at, the next one last.
    users: Vec<User>,
    deriving: Option<Box<Deriving>>,
    /// The account that the store makes, unless it is the one for certificates.
    asked: Option<User>,
    /// When the disk is tried again, and how often it was.
    again_at: Option<Instant>,
    tries: u32,
}

/// An account whose verifier is being made.
struct Deriving {
    user: User,
    password_hash: String,
    verifier: Derivation,
}

impl Making {
    /// `users`: in the order of the configuration.
    pub(crate) fn of(users: &[User]) -> Making {
        Making { users: users.iter().rev().cloned().collect(), ..Making::default() }
    }

    /// Whether the disk need not be waited for.
    pub(crate) fn is_to_go_on(&self, now: Instant) -> bool {
        self.again_at.is_none_or(|at| at <= now)
    }
}

impl Engine {
    /// Goes on with the account that is being made, or begins to make the next one.
    #[inline(never)]
    pub(crate) fn make_accounts(&mut self, entropy: &mut dyn Entropy) {
        if let Some(deriving) = &mut self.making.deriving {
            let verifier = deriving.verifier.step();
            if let Some((verifier, deriving)) = verifier.and_then(|made| Some((made, self.making.deriving.take()?))) {
                let Deriving { user, password_hash, .. } = *deriving;
                self.make_account(user, &password_hash, &verifier.to_string());
            }
            return;
        }
        if self.awaits_disk() {
            return;
        }
        while let Some(user) = self.making.users.pop() {
            let account = self.common.store.own.store.find(user.address.as_str());
            let is_as_configured = account.is_some_and(|account| self.is_as_configured(account, &user.password));
            if !is_as_configured {
                return self.begin_account(user, entropy);
            }
            if self.has_replaced(account) {
                return;
            }
        }
        let Common { connections, store, .. } = &self.common;
        if self.services.certificates.wants_account(connections, store) {
            return self.make_account_of_certificates();
        }
        self.accounts_are_made();
    }

    #[cold]
    #[inline(never)]
    fn make_account_of_certificates(&mut self) {
        let continuation = Continuation { frame: ENGINE, entry: Point::Made.entry() };
        let account = NewAccount { address: certificates::ACCOUNT, aliases: &[], password_hash: "", verifier: "" };
        match self.common.store.own.store.create_account(&account, self.common.turn.wall, continuation) {
            Ok(_) => self.life = Life::AccountMade,
            Err(refusal) => self.account_refused(refusal),
        }
    }

    /// When the disk is tried again, while accounts are made.
    pub(crate) fn next_try_to_make(&self) -> Option<Instant> {
        self.making.again_at.filter(|_| self.life == Life::MakingAccounts)
    }

    /// Whether accounts wait for the disk. Tries it again when it is time.
    fn awaits_disk(&mut self) -> bool {
        let Some(at) = self.making.again_at else { return false };
        if self.common.turn.now < at {
            return true;
        }
        self.making.tries += 1;
        let store = &mut self.common.store.own.store;
        let fails = store.state() != State::Serving && self.making.tries < TRIES_MAX;
        if fails {
            store.retry();
        }
        self.making.again_at = fails.then_some(self.common.turn.now + AGAIN);
        fails
    }

    fn begin_account(&mut self, user: User, entropy: &mut dyn Entropy) {
        match &user.password {
            Password::Plain(password) => {
                let (mut salt, mut verifier_salt) = ([0; mail::SALT_BYTES], [0; sasl::SALT_BYTES]);
                entropy.random(&mut salt);
                entropy.random(&mut verifier_salt);
                let password_hash = self.common.compute.hash_now(password.as_bytes(), salt);
                let verifier = Derivation::begin(password.as_bytes(), verifier_salt);
                self.making.deriving = Some(Box::new(Deriving { user, password_hash, verifier }));
            }
            Password::Argon2id(hash) => {
                let hash = hash.clone();
                self.make_account(user, &hash, "");
            }
        }
    }

    /// Whether the owner of the account has put another password in place of the configuration's.
    fn has_replaced(&self, account: Option<AccountId>) -> bool {
        let known = account.and_then(|account| self.common.store.own.store.account(account));
        known.is_some_and(|known| !known.replaced().is_empty())
    }

    /// Whether the configuration says the password that it said when the account was made, or last got one from it, as far as that is asked.
    fn is_as_configured(&mut self, account: AccountId, password: &Password) -> bool {
        let Common { store, compute, .. } = &mut self.common;
        let Some(known) = store.own.store.account(account) else { return false };
        let before = if known.replaced().is_empty() { known.password_hash() } else { known.replaced() };
        match password {
            Password::Plain(_) if known.replaced().is_empty() => true,
            Password::Plain(password) => compute.is_password_of(password, before),
            Password::Argon2id(hash) => hash == before,
        }
    }

    fn make_account(&mut self, user: User, password_hash: &str, verifier: &str) {
        let aliases: Vec<&str> = user.aliases.iter().map(|alias| alias.as_str()).collect();
        let account = NewAccount { address: user.address.as_str(), aliases: &aliases, password_hash, verifier };
        let continuation = Continuation { frame: ENGINE, entry: Point::Made.entry() };
        let store = &mut self.common.store.own.store;
        let made = match store.find(user.address.as_str()) {
            None => store.create_account(&account, self.common.turn.wall, continuation).map(|_| ()),
            Some(id) => {
                self.common
                    .console
                    .print(format_args!("store: {} gets the password that the configuration says", user.address));
                store.set_password(id, &NewPassword { hash: password_hash, verifier, replaced: "" }, continuation)
            }
        };
        self.making.asked = Some(user);
        match made {
            Ok(()) => self.life = Life::AccountMade,
            Err(refusal) => self.account_refused(refusal),
        }
    }

    pub(crate) fn account_made(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Refused(refusal) => self.account_refused(refusal),
            _ => self.making.asked = None,
        }
        if self.life == Life::AccountMade {
            self.life = Life::MakingAccounts;
        }
    }

    /// The store does not make the account. It is asked again if that may help.
    pub(crate) fn account_refused(&mut self, refusal: Refusal) {
        // Only another start helps after a flush that failed while the disk was opened.
        let is_lasting = self.common.store.own.store.state() == State::ReadOnly(WhyReadOnly::LastFlushFailed);
        let asked = self.making.asked.take();
        let address = asked.as_ref().map_or("the account for certificates", |user| user.address.as_str());
        let console = &mut self.common.console;
        if refusal != Refusal::ReadOnly {
            return console.print(format_args!("store: {address} is not set up: {refusal:?}"));
        }
        if is_lasting || self.making.tries >= TRIES_MAX {
            return console.print(format_args!("store: {address} is not set up: the disk fails; restart the server"));
        }
        if self.making.tries == 0 {
            console
                .print(format_args!("store: {address} is not set up yet: the disk fails; trying again for a minute"));
        }
        match asked {
            Some(user) => self.making.users.push(user),
            None => self.services.certificates.make_account_again(),
        }
        self.making.again_at = Some(self.common.turn.now + AGAIN);
    }
}
