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
}

impl<'a> KnownAccount<'a> {
    pub(super) fn of(info: AccountInfo<'a>) -> KnownAccount<'a> {
        KnownAccount { id: info.id(), address: info.address(), password_hash: info.password_hash() }
    }
}

/// The snapshot. Whoever changes an account sends a new one.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    known: BTreeMap<AccountId, Account>,
    addresses: BTreeMap<Box<str>, AccountId>,
}

#[derive(Debug)]
struct Account {
    address: Box<str>,
    password_hash: Box<str>,
}

impl Accounts {
    /// All accounts of `store`.
    pub(super) fn of(store: &Store) -> Accounts {
        let mut accounts = Accounts::default();
        for info in store.accounts() {
            let account = Account { address: info.address().into(), password_hash: info.password_hash().into() };
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
        Some(KnownAccount { id, address: &account.address, password_hash: &account.password_hash })
    }

    /// What passwords are checked against.
    pub(crate) fn password_hashes(&self) -> impl Iterator<Item = &str> {
        self.known.values().map(|account| &*account.password_hash)
    }
}
