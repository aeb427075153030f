//! Who is who, where there are several cores: a snapshot that all of them share and nobody changes, and the passwords that were changed since, which the owner of the account tells all.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use store::{AccountId, AccountInfo, Store};
use tasks::FrameId;

use super::{Archive, Elsewhere, News};

/// What a session needs to know of an account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownAccount<'a> {
    pub(crate) id: AccountId,
    pub(crate) address: &'a str,
    pub(crate) password_hash: &'a str,
    /// What proofs of knowing the password are checked against; empty where there is none.
    pub(crate) verifier: &'a str,
}

impl<'a> KnownAccount<'a> {
    pub(super) fn of(info: AccountInfo<'a>) -> KnownAccount<'a> {
        let (address, password_hash, verifier) = (info.address(), info.password_hash(), info.verifier());
        KnownAccount { id: info.id(), address, password_hash, verifier }
    }
}

/// The snapshot. Passwords that are changed later stand beside it.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    known: BTreeMap<AccountId, Account>,
    addresses: BTreeMap<Box<str>, AccountId>,
    secret_of_nobody: [u8; 16],
    secret_of_paths: [u8; 16],
}

#[derive(Debug)]
struct Account {
    address: Box<str>,
    password_hash: Box<str>,
    verifier: Box<str>,
}

impl Accounts {
    /// All accounts of `store`.
    pub(super) fn of(store: &Store) -> Accounts {
        let (secret_of_nobody, secret_of_paths) = (secret_of_nobody(store), secret_of_paths(store));
        let mut accounts = Accounts { secret_of_nobody, secret_of_paths, ..Accounts::default() };
        for info in store.accounts() {
            let account = Account {
                address: info.address().into(),
                password_hash: info.password_hash().into(),
                verifier: info.verifier().into(),
            };
            accounts.known.insert(info.id(), account);
            for address in core::iter::once(info.address()).chain(info.aliases()) {
                accounts.addresses.insert(address.into(), info.id());
            }
        }
        accounts
    }

    pub(super) fn find(&self, address: &str) -> Option<AccountId> {
        self.addresses.get(address).copied()
    }

    pub(super) fn account(&self, id: AccountId) -> Option<KnownAccount<'_>> {
        let account = self.known.get(&id)?;
        let Account { address, password_hash, verifier } = account;
        Some(KnownAccount { id, address, password_hash, verifier })
    }

    /// As [`secret_of_nobody`].
    pub(super) fn secret_of_nobody(&self) -> [u8; 16] {
        self.secret_of_nobody
    }

    /// As [`secret_of_paths`].
    pub(super) fn secret_of_paths(&self) -> [u8; 16] {
        self.secret_of_paths
    }

    /// What passwords are checked against.
    pub(crate) fn password_hashes(&self) -> impl Iterator<Item = &str> {
        self.known.values().map(|account| &*account.password_hash)
    }
}

/// The password that an account has now.
#[derive(Debug)]
pub(crate) struct Changed {
    account: AccountId,
    password_hash: Box<str>,
    verifier: Box<str>,
}

impl Changed {
    /// As the store of its owner knows it.
    pub(super) fn of(info: &AccountInfo<'_>) -> Changed {
        Changed { account: info.id(), password_hash: info.password_hash().into(), verifier: info.verifier().into() }
    }
}

impl Elsewhere {
    /// As all cores know it.
    pub(super) fn account(&self, id: AccountId) -> Option<KnownAccount<'_>> {
        let known = self.accounts.account(id)?;
        Some(match self.changed.get(&id) {
            None => known,
            Some(changed) => {
                KnownAccount { password_hash: &changed.password_hash, verifier: &changed.verifier, ..known }
            }
        })
    }

    /// The password of an account is another. Its sessions on this core are to be ended.
    pub(crate) fn password_changed(&mut self, changed: Arc<Changed>) -> AccountId {
        let account = changed.account;
        self.changed.insert(account, changed);
        account
    }
}

impl Archive {
    /// The next account of this core's whose sessions here are to be ended.
    pub(crate) fn next_outdated(&mut self) -> Option<AccountId> {
        self.outdated.pop()
    }

    /// Tells all other cores the password that an account of this core's has now, for the clerk of
    /// this frame: how many they are. The sessions of the account on this core are to be ended
    /// before anything else is heard ([`Archive::next_outdated`]).
    pub(crate) fn tell_password(&mut self, account: AccountId, frame: FrameId) -> u8 {
        self.outdated.push(account);
        let Some(known) = self.own.store.account(account) else { return 0 };
        let Some(elsewhere) = &mut self.elsewhere else { return 0 };
        let changed = Arc::new(Changed::of(&known));
        elsewhere.password_changed(Arc::clone(&changed));
        self.own.tell_all(|| News::Password(frame, Arc::clone(&changed)));
        self.own.cores() - 1
    }
}

/// What the salts are made from that are told of names that nobody has: the disk's, so that they are the same on each core and in each life of the machine.
pub(super) fn secret_of_nobody(store: &Store) -> [u8; 16] {
    store.secret(b"SCRAM of nobody")
}

/// What addresses of those are sealed with whose letters are sent on: the same so, too.
pub(super) fn secret_of_paths(store: &Store) -> [u8; 16] {
    store.secret(b"senders of letters that are sent on")
}
