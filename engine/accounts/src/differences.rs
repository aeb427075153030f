//! The differences between the accounts of the configuration and the accounts on the disk.
//!
//! The configuration decides the aliases: an alias belongs to the account that has it in the file.
//! An account that is not in the file keeps each of its aliases until the file gives that alias to
//! another account. No account is ever removed, so its own address always stays its own: it cannot
//! become an alias of another account.
//!
//! An alias may move from one account to another, or become the address of a new account. So
//! aliases are removed first, then accounts are created, and then aliases are added. For each of
//! these steps, the configuration is compared with the disk again. So a power cut between two steps
//! does no harm: the next start continues.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use configuration::{Configuration, Password, User};
use machine::ConsoleLines;
use store::{AccountId, AccountInfo, Store};

use crate::lines::Lines;

/// A change that makes an account on the disk agree with the configuration.
pub(crate) struct AccountChange {
    /// The address of the account.
    pub(crate) address: Box<str>,
    pub(crate) kind: AccountChangeKind,
}

pub(crate) enum AccountChangeKind {
    /// Replace the aliases.
    Aliases {
        id: AccountId,
        /// All aliases of the account after the change.
        aliases: Vec<Box<str>>,
        lost: Vec<Box<str>>,
        gained: Vec<Box<str>>,
    },
    /// Create the account with these aliases and this password hash. The hash is empty if the
    /// configuration has a plain password.
    Create(Vec<Box<str>>, Box<str>),
    /// Set this password hash.
    Password(AccountId, Box<str>),
}

/// Compares a configuration with the accounts of a disk.
pub(crate) struct Differences<'c> {
    configuration: &'c Configuration,
    /// Each address and alias of the configuration, and the address of its account.
    claims: BTreeMap<&'c str, &'c str>,
}

impl<'c> Differences<'c> {
    pub(crate) fn new(configuration: &'c Configuration) -> Differences<'c> {
        let claims_of = |user: &'c User| {
            let names = core::iter::once(&user.address).chain(&user.aliases);
            names.map(|name| (name.as_str(), user.address.as_str()))
        };
        let claims = configuration.users.iter().flat_map(claims_of).collect();
        Differences { configuration, claims }
    }

    fn is_configured(&self, address: &str) -> bool {
        self.claims.get(address) == Some(&address)
    }

    /// Prints the accounts of the disk that the configuration does not have.
    pub(crate) fn print_unconfigured(&self, store: &Store, console: &mut ConsoleLines) {
        let (mut lines, mut domains) = (Lines::default(), BTreeMap::<&str, usize>::new());
        for account in store.accounts() {
            // The account for certificates has no domain.
            let Some((_, domain)) = account.address().rsplit_once('@') else { continue };
            if !self.configuration.serves(domain) {
                *domains.entry(domain).or_default() += 1;
            } else if !self.is_configured(account.address()) && !self.is_reserved(&account) {
                lines.add(|| unconfigured(&account));
            }
        }
        lines.end("accounts", console);
        let mut lines = Lines::default();
        for (domain, accounts) in domains {
            lines.add(|| {
                format!(
                    "accounts: {domain} is not in `domains`; mail to its {accounts} account(s) is \
                     refused; their mail stays, and their owners can log in; to accept mail again, \
                     add the domain"
                )
            });
        }
        lines.end("domains", console);
    }

    /// Whether an account is the reserved account, which has no password.
    fn is_reserved(&self, account: &AccountInfo<'_>) -> bool {
        account.password_hash().is_empty()
            && configuration::is_reserved(account.address())
            && !self.is_configured(account.address())
    }

    /// The address of the reserved account, if it is needed and does not exist. Prints how the mail
    /// of each reserved account can be read, as long as it has mail or gets mail. A reserved
    /// account of an earlier first domain counts too.
    pub(crate) fn missing_reserved_account(
        &self,
        store: &Store,
        console: &mut ConsoleLines,
    ) -> Option<Box<str>> {
        let address = self.configuration.reserved_address();
        let is_needed = self.configuration.users.is_empty();
        let has_mail = |account: &AccountInfo<'_>| {
            let domain = account.address().rsplit_once('@').map_or("", |(_, domain)| domain);
            self.is_reserved(account)
                && self.configuration.serves(domain)
                && store.usage(account.id()).mailboxes > 0
        };
        let mut kept: BTreeSet<Box<str>> =
            store.accounts().filter(has_mail).map(|account| account.address().into()).collect();
        if is_needed {
            kept.insert(address.as_str().into());
        }
        let mut lines = Lines::default();
        for address in kept {
            lines.add(|| {
                format!(
                    "accounts: mail to postmaster and abuse that came while there were no users is \
                     kept in {address}; to read it, add a [[user]] section with this address and a \
                     password"
                )
            });
        }
        lines.end("accounts", console);
        (is_needed && store.find(&address).is_none()).then(|| address.into())
    }

    /// Prints the aliases that are addresses of other accounts.
    pub(crate) fn print_refused_aliases(&self, store: &Store, console: &mut ConsoleLines) {
        let mut lines = Lines::default();
        for user in &self.configuration.users {
            for alias in user.aliases.iter().filter(|alias| is_account(store, alias.as_str())) {
                lines.add(|| {
                    format!(
                        "accounts: {alias} has an account of its own and is not an alias of {}; \
                         its mail stays there; to pass it on, configure that account with `forward`",
                        user.address
                    )
                });
            }
        }
        lines.end("aliases", console);
    }

    /// The accounts that lose aliases.
    pub(crate) fn losses(&self, store: &Store) -> Vec<AccountChange> {
        let mut changes = Vec::new();
        for account in store.accounts() {
            let address = account.address();
            let stays = |alias: &&str| match self.claims.get(alias) {
                Some(claimed_by) => *claimed_by == address,
                None => !self.is_configured(address),
            };
            changes.extend(alias_change(&account, account.aliases().filter(stays)));
        }
        changes
    }

    /// The accounts to create, and the accounts with another password hash in the configuration.
    pub(crate) fn accounts(&self, store: &Store) -> Vec<AccountChange> {
        let users = self.configuration.users.iter();
        users.filter_map(|user| account_change(user, store)).collect()
    }

    /// The accounts that get aliases.
    pub(crate) fn gains(&self, store: &Store) -> Vec<AccountChange> {
        let mut changes = Vec::new();
        for user in &self.configuration.users {
            let Some(account) = known(user, store) else { continue };
            changes.extend(alias_change(&account, free_aliases(user, store)));
        }
        changes
    }
}

/// The line for an account that the configuration does not have.
fn unconfigured(account: &AccountInfo<'_>) -> String {
    let address = account.address();
    if account.password_hash().is_empty() {
        format!(
            "accounts: {address} is not in the configuration and has no password; to read its \
             mail, add a user with this address and a password"
        )
    } else {
        format!(
            "accounts: {address} is not in the configuration; the account and its mail stay, it \
             still gets mail, and its owner can log in; to lock it, put its section back with a \
             new password"
        )
    }
}

/// The account of a user, if it exists.
pub(crate) fn known<'s>(user: &User, store: &'s Store) -> Option<AccountInfo<'s>> {
    let account = store.account(store.find(user.address.as_str())?)?;
    Some(account).filter(|account| account.address() == user.address.as_str())
}

/// The hash of the last password that an account got from the configuration. Empty: none yet.
pub(crate) fn configured_hash<'s>(account: &AccountInfo<'s>) -> &'s str {
    if account.replaced().is_empty() { account.password_hash() } else { account.replaced() }
}

fn account_change(user: &User, store: &Store) -> Option<AccountChange> {
    let hash = match &user.password {
        Password::Argon2id(hash) => &**hash,
        Password::Plain(_) => "",
    };
    let kind = match known(user, store) {
        None => AccountChangeKind::Create(
            free_aliases(user, store).map(Box::from).collect(),
            hash.into(),
        ),
        Some(account) if !hash.is_empty() && hash != configured_hash(&account) => {
            AccountChangeKind::Password(account.id(), hash.into())
        }
        Some(_) => return None,
    };
    Some(AccountChange { address: user.address.as_str().into(), kind })
}

/// Whether there is an account with this address of its own.
fn is_account(store: &Store, address: &str) -> bool {
    let account = store.find(address).and_then(|id| store.account(id));
    account.is_some_and(|account| account.address() == address)
}

/// The configured aliases of a user, without addresses of accounts.
fn free_aliases<'c>(user: &'c User, store: &Store) -> impl Iterator<Item = &'c str> {
    let aliases = user.aliases.iter().map(|alias| alias.as_str());
    aliases.filter(move |alias| !is_account(store, alias))
}

/// The change that gives exactly these aliases to an account. `None`: it has them already.
fn alias_change<'a>(
    account: &AccountInfo<'_>,
    aliases: impl Iterator<Item = &'a str>,
) -> Option<AccountChange> {
    let aliases: Vec<Box<str>> = aliases.map(Box::from).collect();
    let before: Vec<Box<str>> = account.aliases().map(Box::from).collect();
    let without = |all: &[Box<str>], others: &[Box<str>]| {
        all.iter().filter(|alias| !others.contains(alias)).cloned().collect::<Vec<_>>()
    };
    let (lost, gained) = (without(&before, &aliases), without(&aliases, &before));
    let is_changed = !(lost.is_empty() && gained.is_empty());
    is_changed.then(|| AccountChange {
        address: account.address().into(),
        kind: AccountChangeKind::Aliases { id: account.id(), aliases, lost, gained },
    })
}
