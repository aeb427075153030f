//! The accounts on a machine with several cores: an immutable snapshot that all cores share, and
//! the passwords that were changed since the snapshot.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use store::{AccountId, AccountInfo, Store};

/// The properties of an account that a session needs.
#[derive(Clone, Copy, Debug)]
pub struct KnownAccount<'a> {
    /// The id of the account.
    pub id: AccountId,
    /// The address of the account.
    pub address: &'a str,
    /// The hash that a password is checked against.
    pub password_hash: &'a str,
    /// The verifier that proofs of the password are checked against. Empty if there is none.
    pub verifier: &'a str,
}

impl<'a> KnownAccount<'a> {
    pub(crate) fn of(info: AccountInfo<'a>) -> KnownAccount<'a> {
        let (address, password_hash, verifier) =
            (info.address(), info.password_hash(), info.verifier());
        KnownAccount { id: info.id(), address, password_hash, verifier }
    }
}

/// The snapshot of all accounts. `OtherCores` has the passwords that were changed since the
/// snapshot.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    known: BTreeMap<AccountId, AccountSnapshot>,
    addresses: BTreeMap<Box<str>, AccountId>,
    /// The replaced password hashes of all accounts that have one.
    replaced: Vec<Box<str>>,
    secret_of_unknown_names: [u8; 16],
    secret_of_paths: [u8; 16],
}

#[derive(Debug)]
struct AccountSnapshot {
    address: Box<str>,
    password_hash: Box<str>,
    verifier: Box<str>,
}

impl Accounts {
    /// All accounts of `store`.
    pub(crate) fn of(store: &Store) -> Accounts {
        let (secret_of_unknown_names, secret_of_paths) =
            (secret_of_unknown_names(store), secret_of_paths(store));
        let mut accounts =
            Accounts { secret_of_unknown_names, secret_of_paths, ..Accounts::default() };
        for info in store.accounts() {
            let account = AccountSnapshot {
                address: info.address().into(),
                password_hash: info.password_hash().into(),
                verifier: info.verifier().into(),
            };
            accounts.known.insert(info.id(), account);
            accounts
                .replaced
                .extend(Some(info.replaced()).filter(|hash| !hash.is_empty()).map(Box::from));
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
        let AccountSnapshot { address, password_hash, verifier } = account;
        Some(KnownAccount { id, address, password_hash, verifier })
    }

    /// See [`secret_of_unknown_names`].
    pub(crate) fn secret_of_unknown_names(&self) -> [u8; 16] {
        self.secret_of_unknown_names
    }

    /// See [`secret_of_paths`].
    pub(crate) fn secret_of_paths(&self) -> [u8; 16] {
        self.secret_of_paths
    }

    /// The password hashes of all accounts that passwords are checked against: the present ones,
    /// and the replaced ones.
    pub(crate) fn password_hashes(&self) -> impl Iterator<Item = &str> {
        let present = self.known.values().map(|account| &*account.password_hash);
        present.chain(self.replaced.iter().map(|hash| &**hash))
    }
}

/// The current password of an account.
#[derive(Debug)]
pub(crate) struct Changed {
    account: AccountId,
    pub(crate) password_hash: Box<str>,
    pub(crate) verifier: Box<str>,
}

impl Changed {
    /// The account.
    pub(crate) fn account(&self) -> AccountId {
        self.account
    }

    /// The password in the store of the account's owner.
    pub(crate) fn of(info: &AccountInfo<'_>) -> Changed {
        Changed {
            account: info.id(),
            password_hash: info.password_hash().into(),
            verifier: info.verifier().into(),
        }
    }
}

/// The secret for the salts of unknown names. The secret depends on the disk, so it is the same on
/// each core and after each start.
pub(crate) fn secret_of_unknown_names(store: &Store) -> [u8; 16] {
    // This name must never change: unknown names would get other salts.
    store.secret(b"SCRAM of nobody")
}

/// The secret for the rewritten senders (SRS) of forwarded mail. It also depends on the disk.
pub(crate) fn secret_of_paths(store: &Store) -> [u8; 16] {
    // This name must never change: addresses that are in use would no longer be recognized.
    store.secret(b"senders of letters that are sent on")
}
