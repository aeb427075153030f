//! Who is who, where there are several cores: a snapshot that all of them share and nobody changes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use store::{AccountId, AccountInfo, Store};

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

/// The snapshot. Whoever changes an account sends a new one.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    known: BTreeMap<AccountId, Account>,
    addresses: BTreeMap<Box<str>, AccountId>,
    secret_of_nobody: [u8; 16],
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
        let mut accounts = Accounts { secret_of_nobody: secret_of_nobody(store), ..Accounts::default() };
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

    /// What passwords are checked against.
    pub(crate) fn password_hashes(&self) -> impl Iterator<Item = &str> {
        self.known.values().map(|account| &*account.password_hash)
    }
}

/// What the salts are made from that are told of names that nobody has: the disk's, so that they are the same on each core and in each life of the machine.
pub(super) fn secret_of_nobody(store: &Store) -> [u8; 16] {
    store.secret(b"SCRAM of nobody")
}
