//! Creates the configured accounts that do not exist, before any client is served. Also gives an
//! existing account the password of the configuration, if the configuration has a new one.
//!
//! A user may have replaced the password of the configuration. The user's password stays valid
//! until the configuration has a new password. To check a plain password of the configuration costs
//! a hash, one a turn. So it is checked only for users that have replaced their password, to keep
//! the start short.
//!
//! A plain password becomes an argon2id hash, in one turn of some 20 ms. It also becomes a SCRAM
//! verifier, which is derived in steps, one a turn (crate `sasl`). A configured password hash gives
//! no verifier.
//!
//! If disk writes fail during this time, they are retried every second for a minute, and no client
//! is served. Otherwise a password that the configuration has replaced would still be valid, and
//! mail to a new account would bounce until the next start. After the minute, access to the
//! existing mail is more important: the machine serves without the account.
//!
//! If the configuration has no accounts, the reserved account is made, which keeps the mail to the
//! administrator (`directory`). The console says where this mail is, as long as it cannot be read.
//!
//! Invariant: `again_at` is set only while the last user of `users`, or an account without a user,
//! waits for the disk.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use compute::Compute;
use configuration::{Configuration, Password, User};
use machine::{ConsoleLines, Entropy, Instant, Micros, Turn};
use sasl::Derivation;
use store::{AccountInfo, NewAccount, NewPassword, Outcome, Refusal, State, Store, WhyReadOnly};
use tasks::{Continuation, FrameId, Subsystem};

tasks::points! {
    /// The wait point at the store while accounts are made.
    pub enum AccountsWaitPoint of Subsystem::Accounts;
    /// An account has been made.
    Made,
}

/// The frame of the engine itself, which no connection has.
const ENGINE: FrameId = FrameId::new(u32::MAX, 0);

/// The interval and the number of retries while accounts are made.
const AGAIN: Micros = Micros::from_secs(1);
const TRIES_MAX: u32 = 60;

/// The parts of a core that create accounts.
pub struct ProvisioningContext<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// The store of the first core, which decides the owners of accounts.
    pub store: &'c mut Store,
    /// Hashes and checks passwords.
    pub compute: &'c mut Compute,
    /// Gets a line for each problem.
    pub console: &'c mut ConsoleLines,
    /// The address of the account for certificates, if it is needed and does not exist.
    pub certificate_account: Option<&'static str>,
}

/// The accounts of the configuration, until all are created.
#[derive(Default)]
pub struct Provisioning {
    /// The accounts that do not exist or were not checked. The last one is the next.
    users: Vec<User>,
    /// The address of the reserved account, until the account is made or not needed.
    reserved: Option<String>,
    /// Whether the configuration has no accounts.
    needs_reserved: bool,
    deriving: Option<Box<Deriving>>,
    /// The account that the store makes now.
    asked: Option<RequestedAccount>,
    /// Whether the store was asked to make the account for certificates. It is asked once.
    has_asked_for_certificates: bool,
    /// The time at which the disk is tried again. `tries` is the number of tries so far.
    again_at: Option<Instant>,
    tries: u32,
}

/// An account that the store was asked to make.
enum RequestedAccount {
    Of(User),
    Reserved(String),
    ForCertificates,
}

/// An account with a verifier that is being derived.
struct Deriving {
    user: User,
    password_hash: String,
    verifier: Derivation,
}

/// The progress of account creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProvisioningProgress {
    /// More work is due.
    Some,
    /// The store makes an account.
    Asked,
    /// All accounts exist.
    All,
}

impl Provisioning {
    /// The accounts of a configuration, in its order.
    pub fn of(configuration: &Configuration) -> Provisioning {
        Provisioning {
            users: configuration.users.iter().rev().cloned().collect(),
            reserved: Some(configuration.reserved_address()),
            needs_reserved: configuration.users.is_empty(),
            ..Provisioning::default()
        }
    }

    /// Whether accounts can be made now. Otherwise they wait for the disk.
    pub fn is_to_go_on(&self, now: Instant) -> bool {
        self.again_at.is_none_or(|at| at <= now)
    }

    /// The time at which the disk is tried again.
    pub fn again_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// Continues with the current account, or begins the next one.
    #[inline(never)]
    pub fn go_on(
        &mut self,
        cx: &mut ProvisioningContext<'_>,
        entropy: &mut dyn Entropy,
    ) -> ProvisioningProgress {
        if let Some(deriving) = &mut self.deriving {
            let verifier = deriving.verifier.step();
            let Some((verifier, deriving)) =
                verifier.and_then(|made| Some((made, self.deriving.take()?)))
            else {
                return ProvisioningProgress::Some;
            };
            let Deriving { user, password_hash, .. } = *deriving;
            return self.make_account(user, &password_hash, &verifier.to_string(), cx);
        }
        if self.awaits_disk(cx) {
            return ProvisioningProgress::Some;
        }
        while let Some(user) = self.users.pop() {
            let account = cx.store.find(user.address.as_str());
            let Some(known) = account.and_then(|account| cx.store.account(account)) else {
                return self.begin_account(user, cx, entropy);
            };
            let has_replaced = !known.replaced().is_empty();
            if !is_as_configured(&known, &user.password, cx.compute) {
                return self.begin_account(user, cx, entropy);
            }
            if has_replaced {
                return ProvisioningProgress::Some;
            }
        }
        if let Some(address) = self.reserved.take()
            && self.is_reserved_account_missing(&address, cx)
        {
            return self.make_internal_account(
                &address.clone(),
                RequestedAccount::Reserved(address),
                cx,
            );
        }
        if !self.has_asked_for_certificates
            && let Some(address) = cx.certificate_account
        {
            self.has_asked_for_certificates = true;
            return self.make_internal_account(address, RequestedAccount::ForCertificates, cx);
        }
        ProvisioningProgress::All
    }

    /// Whether the reserved account is needed and does not exist. If it has mail or may get mail,
    /// tells the operator how to read that mail.
    fn is_reserved_account_missing(&self, address: &str, cx: &mut ProvisioningContext<'_>) -> bool {
        let known = cx.store.find(address).and_then(|account| cx.store.account(account));
        let (exists, has_password) =
            (known.is_some(), known.is_some_and(|known| !known.password_hash().is_empty()));
        let has_mail = known.is_some_and(|known| cx.store.usage(known.id()).mailboxes > 0);
        if !has_password && (self.needs_reserved || has_mail) {
            cx.console.print(format_args!(
                "store: mail to postmaster and abuse from the time without users is kept in the \
                 account {address}; to read it, add a user with this address and a password"
            ));
        }
        self.needs_reserved && !exists
    }

    /// Makes an account without a password.
    #[cold]
    #[inline(never)]
    fn make_internal_account(
        &mut self,
        address: &str,
        requested: RequestedAccount,
        cx: &mut ProvisioningContext<'_>,
    ) -> ProvisioningProgress {
        self.asked = Some(requested);
        let continuation = Continuation { frame: ENGINE, entry: AccountsWaitPoint::Made.entry() };
        let account = NewAccount { address, aliases: &[], password_hash: "", verifier: "" };
        match cx.store.create_account(&account, cx.turn.wall, continuation) {
            Ok(_) => ProvisioningProgress::Asked,
            Err(refusal) => self.refused(refusal, cx),
        }
    }

    /// Whether accounts wait for the disk. Tries the disk again when it is time.
    fn awaits_disk(&mut self, cx: &mut ProvisioningContext<'_>) -> bool {
        let Some(at) = self.again_at else { return false };
        if cx.turn.now < at {
            return true;
        }
        self.tries += 1;
        let store = &mut *cx.store;
        let fails = store.state() != State::Serving && self.tries < TRIES_MAX;
        if fails {
            store.retry();
        }
        self.again_at = fails.then_some(cx.turn.now + AGAIN);
        fails
    }

    fn begin_account(
        &mut self,
        user: User,
        cx: &mut ProvisioningContext<'_>,
        entropy: &mut dyn Entropy,
    ) -> ProvisioningProgress {
        match &user.password {
            Password::Plain(password) => {
                let (mut salt, mut verifier_salt) = ([0; mail::SALT_BYTES], [0; sasl::SALT_BYTES]);
                entropy.random(&mut salt);
                entropy.random(&mut verifier_salt);
                let password_hash = cx.compute.hash_now(password.as_bytes(), salt);
                let verifier = Derivation::begin(password.as_bytes(), verifier_salt);
                self.deriving = Some(Box::new(Deriving { user, password_hash, verifier }));
                ProvisioningProgress::Some
            }
            Password::Argon2id(hash) => {
                let hash = hash.clone();
                self.make_account(user, &hash, "", cx)
            }
        }
    }

    fn make_account(
        &mut self,
        user: User,
        password_hash: &str,
        verifier: &str,
        cx: &mut ProvisioningContext<'_>,
    ) -> ProvisioningProgress {
        let aliases: Vec<&str> = user.aliases.iter().map(|alias| alias.as_str()).collect();
        let account = NewAccount {
            address: user.address.as_str(),
            aliases: &aliases,
            password_hash,
            verifier,
        };
        let continuation = Continuation { frame: ENGINE, entry: AccountsWaitPoint::Made.entry() };
        let store = &mut *cx.store;
        let made = match store.find(user.address.as_str()) {
            None => store.create_account(&account, cx.turn.wall, continuation).map(|_| ()),
            Some(id) => {
                cx.console.print(format_args!(
                    "store: the password of {} was set from the configuration",
                    user.address
                ));
                store.set_password(
                    id,
                    &NewPassword { hash: password_hash, verifier, replaced: "" },
                    continuation,
                )
            }
        };
        self.asked = Some(RequestedAccount::Of(user));
        match made {
            Ok(()) => ProvisioningProgress::Asked,
            Err(refusal) => self.refused(refusal, cx),
        }
    }

    /// Processes the outcome of making the account in the store.
    pub fn woken(&mut self, outcome: Outcome, cx: &mut ProvisioningContext<'_>) {
        match outcome {
            Outcome::Refused(refusal) => _ = self.refused(refusal, cx),
            _ => self.asked = None,
        }
    }

    /// Processes a refusal of the store. Tries again later if that may help.
    fn refused(
        &mut self,
        refusal: Refusal,
        cx: &mut ProvisioningContext<'_>,
    ) -> ProvisioningProgress {
        // If the last flush during opening has failed, only a restart helps.
        let is_lasting = cx.store.state() == State::ReadOnly(WhyReadOnly::LastFlushFailed);
        let asked = self.asked.take();
        let address = match &asked {
            Some(RequestedAccount::Of(user)) => user.address.as_str(),
            Some(RequestedAccount::Reserved(address)) => address,
            Some(RequestedAccount::ForCertificates) | None => "the account for certificates",
        };
        let console = &mut *cx.console;
        if refusal != Refusal::ReadOnly {
            console.print(format_args!("store: {address} cannot be set up: {refusal:?}"));
            return ProvisioningProgress::Some;
        }
        if is_lasting || self.tries >= TRIES_MAX {
            console.print(format_args!(
                "store: {address} cannot be set up: the disk fails; restart the server"
            ));
            return ProvisioningProgress::Some;
        }
        if self.tries == 0 {
            console.print(format_args!(
                "store: {address} cannot be set up yet: the disk fails; retrying for a minute"
            ));
        }
        match asked {
            Some(RequestedAccount::Of(user)) => self.users.push(user),
            Some(RequestedAccount::Reserved(address)) => self.reserved = Some(address),
            Some(RequestedAccount::ForCertificates) | None => {
                self.has_asked_for_certificates = false;
            }
        }
        self.again_at = Some(cx.turn.now + AGAIN);
        ProvisioningProgress::Some
    }
}

/// Whether the configured password is the last one that the account got from the configuration. A
/// plain password is checked only if the owner has replaced it. The reserved account has none yet.
fn is_as_configured(known: &AccountInfo<'_>, password: &Password, compute: &mut Compute) -> bool {
    let before = if known.replaced().is_empty() { known.password_hash() } else { known.replaced() };
    match password {
        _ if before.is_empty() => false,
        Password::Plain(_) if known.replaced().is_empty() => true,
        Password::Plain(password) => compute.is_password_of(password, before),
        Password::Argon2id(hash) => hash == before,
    }
}
