//! The accounts where there are several cores: a snapshot that all of them share and nothing
//! changes, and the passwords that were changed since.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use store::{AccountId, AccountInfo, Store};

/// What a session needs to know of an account.
#[derive(Clone, Copy, Debug)]
pub struct KnownAccount<'a> {
    /// Its name here.
    pub id: AccountId,
    /// Its address.
    pub address: &'a str,
    /// What its password is checked against.
    pub password_hash: &'a str,
    /// What proofs of knowing the password are checked against; empty where there is none.
    pub verifier: &'a str,
}

impl<'a> KnownAccount<'a> {
    pub(crate) fn of(info: AccountInfo<'a>) -> KnownAccount<'a> {
        let (address, password_hash, verifier) =
            (info.address(), info.password_hash(), info.verifier());
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
    pub(crate) fn of(store: &Store) -> Accounts {
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

    pub(crate) fn find(&self, address: &str) -> Option<AccountId> {
        self.addresses.get(address).copied()
    }

    pub(crate) fn account(&self, id: AccountId) -> Option<KnownAccount<'_>> {
        let account = self.known.get(&id)?;
        let Account { address, password_hash, verifier } = account;
        Some(KnownAccount { id, address, password_hash, verifier })
    }

    /// As [`secret_of_nobody`].
    pub(crate) fn secret_of_nobody(&self) -> [u8; 16] {
        self.secret_of_nobody
    }

    /// As [`secret_of_paths`].
    pub(crate) fn secret_of_paths(&self) -> [u8; 16] {
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
    pub(crate) password_hash: Box<str>,
    pub(crate) verifier: Box<str>,
}

impl Changed {
    /// Whose it is.
    pub(crate) fn account(&self) -> AccountId {
        self.account
    }

    /// As the store of its owner knows it.
    pub(crate) fn of(info: &AccountInfo<'_>) -> Changed {
        Changed {
            account: info.id(),
            password_hash: info.password_hash().into(),
            verifier: info.verifier().into(),
        }
    }
}

/// What salts for names without an account are made from: the disk's, so that they are the same on
/// each core and after each start.
pub(crate) fn secret_of_nobody(store: &Store) -> [u8; 16] {
    store.secret(b"SCRAM of nobody")
}

/// What addresses of those are sealed with whose letters are sent on: the same so, too.
pub(crate) fn secret_of_paths(store: &Store) -> [u8; 16] {
    store.secret(b"senders of letters that are sent on")
}
