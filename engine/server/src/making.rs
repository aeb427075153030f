//! Making the accounts that the configuration asks for and that are not there yet, before anybody is served; and giving those that are there the password that it says, if it says another
//! than it did.
//!
//! A password that its owner has changed stays as long as the configuration says the one that he has replaced. Whether a plain one is still that costs a hash, one a turn; that is
//! asked only where the owner has changed his, since every start would take the longer.
//!
//! A plain password becomes an argon2id hash, which costs a turn of some 20 ms, and a verifier of SCRAM, which is made step by step, one a turn (crate `sasl`). Of a password hash that
//! the configuration brings no verifier can be made.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use configuration::{Password, User};
use machine::{Entropy, Instant, Micros};
use sasl::Derivation;
use store::{AccountId, NewAccount, NewPassword, Outcome, Refusal, State};
use tasks::Continuation;

use crate::common::Common;
use crate::engine::Engine;
use crate::life::{ENGINE, Life};
use crate::subsystem::Subsystem;

tasks::points! {
    /// Where the engine waits for the store while it makes accounts.
    pub(crate) enum Point of Subsystem::Accounts;
    /// An account has been made.
    Made,
}

/// How often accounts are tried again that a disk without writes has kept from being made, and how
/// long that takes each time. Then the machine serves without them.
const TRIES_MAX: u32 = 60;
const AGAIN: Micros = Micros::from_secs(1);

/// The accounts that the configuration asks for, until they are made.
#[derive(Default)]
pub(crate) struct Making {
    /// Those that were not looked at, the next one last.
    users: Vec<User>,
    deriving: Option<Box<Deriving>>,
    /// The one that the store makes.
    asked: Option<User>,
    /// Those that the store has refused while it takes no writes.
    unmade: Vec<User>,
    /// When these are tried again, and how often they were.
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

    /// Whether there is something to do at once, while accounts are made.
    pub(crate) fn is_to_go_on(&self, now: Instant) -> bool {
        self.again_at.is_none_or(|at| at <= now)
    }

    /// When there is, if accounts are tried again.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.again_at
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
        if !self.is_to_make_now() {
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
        if !self.making.unmade.is_empty() && self.making.tries < TRIES_MAX {
            self.making.again_at = Some(self.common.turn.now + AGAIN);
            return;
        }
        if self.is_without_account_of_certificates() {
            return self.make_account_of_certificates();
        }
        self.accounts_are_made();
    }

    /// Whether the next account can be looked at. Those that a disk without writes has kept from being
    /// made are tried again every second, and so is the disk.
    fn is_to_make_now(&mut self) -> bool {
        let Some(at) = self.making.again_at else { return true };
        if self.common.turn.now < at {
            return false;
        }
        self.making.tries += 1;
        let store = &mut self.common.store.own.store;
        if store.state() != State::Serving && self.making.tries < TRIES_MAX {
            store.retry();
            self.making.again_at = Some(self.common.turn.now + AGAIN);
            return false;
        }
        self.making.again_at = None;
        self.making.users = core::mem::take(&mut self.making.unmade);
        self.making.users.reverse();
        true
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

    /// The store does not make the account. If it is because of the disk, that is tried again.
    fn account_refused(&mut self, refusal: Refusal) {
        let Some(user) = self.making.asked.take() else {
            // It is the machine's own, for certificates.
            return self.common.console.print(format_args!("store: an account is not made: {refusal:?}"));
        };
        if self.making.tries == 0 {
            self.common.console.print(format_args!("store: {} is not made: {refusal:?}", user.address));
        }
        if let Refusal::ReadOnly | Refusal::WriteFailed = refusal {
            self.making.unmade.push(user);
        }
    }
}
