//! Address lookup: from a recipient's path to an account.
//!
//! An address is looked up in its canonical form, `local-part@domain` in lower case without quotes.
//! The domain must be one of ours. An address without a domain belongs to the first of them. If no
//! account has the address, the directory tries three other accounts in this order. The first is
//! the account of the part before the first `+` (RFC 5233 section 1). The second is the
//! administrator, only for the addresses of the postmaster (RFC 5321 section 4.5.1) and for reports
//! of abuse (RFC 2142 section 4). The last is the catch-all account of the domain.
//!
//! An address or alias of the configuration may have no account, if the change of the accounts was
//! refused at the start (`provisioning`). The next start tries the change again. Until then mail to
//! the address is refused temporarily, and the catch-all account does not get it.
//!
//! A configuration may have no accounts. Then the mail for the administrator is kept in the
//! *reserved account*, which has no password, and gets no mail at its own address. It gets no
//! further mail once the configuration has an account. It becomes a usual account when the
//! configuration names its address and a password. If another domain becomes the first one, the
//! reserved account of the earlier first domain stays reserved.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::iter;
use core::net::IpAddr;

use configuration::{Configuration, Forwarding, HostName, Quota, User};
use dns::Name;
use shards::{Daily, KnownAccount, ShardedStore};
use smtp::{LOCAL_PART_BYTES_MAX, RecipientRefusal, ReversePath, SmtpPath, is_administrative};
use store::{AccountId, Recipient};

use crate::entries;

/// Bytes of the longest canonical address: local part, `@`, domain.
const ADDRESS_BYTES_MAX: usize = LOCAL_PART_BYTES_MAX + 1 + 255;

/// The local domains and the configured properties of accounts.
#[derive(Debug)]
pub struct Directory {
    domains: Vec<LocalDomain>,
    /// The addresses and aliases of the configuration.
    configured: BTreeMap<String, ConfiguredName>,
    /// The address of the account that gets the mail for the administrator.
    postmaster: String,
    administrators: Vec<String>,
    quota: Quota,
    /// Quotas of accounts with their own setting, by address.
    quotas: BTreeMap<String, Quota>,
    /// Forwardings of accounts, by address.
    forwardings: BTreeMap<String, Forwarding>,
    daily: Daily,
    /// Daily limits of accounts with their own setting, by address.
    dailies: BTreeMap<String, Daily>,
}

/// A name of an account in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConfiguredName {
    Address,
    Alias,
}

#[derive(Debug)]
struct LocalDomain {
    name: String,
    /// The address of the account that gets mail for unknown users of this domain.
    catch_all: Option<String>,
}

impl Directory {
    /// The domains and users of the configuration.
    pub fn new(configuration: &Configuration) -> Directory {
        let catches = |domain: &HostName| {
            configuration.users.iter().find(|user| user.catch_all.contains(domain))
        };
        let domain = |domain: &HostName| LocalDomain {
            name: domain.as_str().to_string(),
            catch_all: catches(domain).map(|user| user.address.as_str().to_string()),
        };
        Directory {
            domains: configuration.domains.iter().map(domain).collect(),
            configured: configuration
                .users
                .iter()
                .flat_map(|user| {
                    let aliases = user.aliases.iter().map(|alias| (alias, ConfiguredName::Alias));
                    iter::once((&user.address, ConfiguredName::Address)).chain(aliases)
                })
                .map(|(name, kind)| (name.as_str().to_string(), kind))
                .collect(),
            administrators: addresses(
                configuration.users.iter().filter(|user| user.is_administrator),
            ),
            quota: configuration.limits.quota,
            quotas: configuration
                .users
                .iter()
                .filter_map(|user| Some((user.address.as_str().to_string(), user.quota?)))
                .collect(),
            forwardings: configuration
                .users
                .iter()
                .filter_map(|user| {
                    Some((user.address.as_str().to_string(), user.forwarding.clone()?))
                })
                .collect(),
            daily: daily_of(configuration, None),
            dailies: configuration
                .users
                .iter()
                .map(|user| {
                    (user.address.as_str().to_string(), daily_of(configuration, Some(user)))
                })
                .filter(|(_, daily)| *daily != daily_of(configuration, None))
                .collect(),
            postmaster: configuration.postmaster(),
        }
    }

    /// The account that mail for `path` is delivered to.
    ///
    /// Errors: why there is no account. `is_own`: whether an IP address belongs to this machine. An
    /// address literal with such an IP address counts as the first domain.
    pub fn recipient(
        &self,
        store: &ShardedStore,
        is_own: impl Fn(IpAddr) -> bool,
        path: &SmtpPath<'_>,
    ) -> Result<AccountId, RecipientRefusal> {
        let mut plain = [0; LOCAL_PART_BYTES_MAX];
        let (local_part, domain) = match path {
            SmtpPath::LocalPart(name) => (*name, self.domains.first()),
            SmtpPath::Mailbox(mailbox) => {
                let domain = match mailbox.domain {
                    smtp::Domain::Name(name) => self.domain(name),
                    smtp::Domain::Literal(address) => {
                        self.domains.first().filter(|_| is_own(address))
                    }
                };
                (mailbox.plain_local_part(&mut plain), domain)
            }
        };
        self.reader_of(store, local_part, domain.ok_or(RecipientRefusal::NotLocal)?)
    }

    /// The same lookup as [`Directory::recipient`], for an address in the form of account
    /// addresses. It also finds the account of the administrator by its own address, even if that
    /// is the reserved account: a message in the queue may have this address.
    ///
    /// Errors: why there is no account.
    pub fn recipient_at(
        &self,
        store: &ShardedStore,
        address: &str,
    ) -> Result<AccountId, RecipientRefusal> {
        if address == self.postmaster {
            return self.postmaster(store);
        }
        let parts = address.rsplit_once('@');
        let parts = parts.and_then(|(local_part, name)| Some((local_part, self.domain(name)?)));
        let (local_part, domain) = parts.ok_or(RecipientRefusal::NotLocal)?;
        self.reader_of(store, local_part, domain)
    }

    /// Whether an address is in a local domain.
    pub fn has_domain_of(&self, address: &str) -> bool {
        address.rsplit_once('@').is_some_and(|(_, domain)| self.serves(domain))
    }

    /// Whether a domain is local.
    pub fn has_domain(&self, name: &Name) -> bool {
        self.serves(name.as_str())
    }

    /// The same check as [`Directory::has_domain`], for a name as text.
    pub fn serves(&self, domain: &str) -> bool {
        self.domain(domain).is_some()
    }

    /// Whether one of our domains, or the hostname, is aligned with this domain (DMARC, RFC 7489
    /// section 3.1.2). Aligned domains are equal, or one is a subdomain of the other. By the RFC,
    /// two subdomains of one organization are aligned too, but this function does not recognize
    /// that.
    pub fn is_aligned(&self, domain: &Name, hostname: &str) -> bool {
        let names = self.domains.iter().map(|domain| domain.name.as_str()).chain([hostname]);
        let mut own = names.filter_map(|name| Name::of_bytes(name.as_bytes()).ok());
        own.any(|own| own.is_within(domain) || domain.is_within(&own))
    }

    fn domain(&self, name: &str) -> Option<&LocalDomain> {
        // Nearly all clients write the domain in lower case, and an exact comparison is cheaper.
        self.domains
            .iter()
            .find(|domain| domain.name == name || domain.name.eq_ignore_ascii_case(name))
    }

    fn reader_of(
        &self,
        store: &ShardedStore,
        local_part: &str,
        domain: &LocalDomain,
    ) -> Result<AccountId, RecipientRefusal> {
        let mut buffer = [0; ADDRESS_BYTES_MAX];
        let mut find = |local_part| {
            let address = canonical(local_part, &domain.name, &mut buffer)?;
            self.usual_account(store, address).map(|known| known.id)
        };
        if let Some(account) = find(local_part) {
            return Ok(account);
        }
        let user = local_part.split_once('+').map_or(local_part, |(user, _)| user);
        if let Some(account) = find(user) {
            return Ok(account);
        }
        let mut is_configured = |local_part| {
            canonical(local_part, &domain.name, &mut buffer)
                .is_some_and(|address| self.configured.contains_key(address))
        };
        match &domain.catch_all {
            _ if is_administrative(user) => self.postmaster(store),
            _ if is_configured(local_part) || is_configured(user) => {
                Err(RecipientRefusal::Unavailable)
            }
            Some(address) => store.find(address).ok_or(RecipientRefusal::Unavailable),
            None => Err(RecipientRefusal::UnknownUser),
        }
    }

    /// The account for a login as `name`, which is an address or a local part in the first domain.
    /// White space around it does not count.
    pub fn login(&self, store: &ShardedStore, name: &str) -> LoginAccount {
        let name = name.trim();
        let (local_part, domain) = match name.rsplit_once('@') {
            Some(parts) => parts,
            None => (name, self.domains.first().map_or("", |domain| &domain.name)),
        };
        let mut buffer = [0; ADDRESS_BYTES_MAX];
        let address = canonical(local_part, domain, &mut buffer).unwrap_or(name);
        let known = self.usual_account(store, address);
        LoginAccount {
            account: known.map(|known| known.id),
            name: known.map_or(address, |known| known.address).into(),
        }
    }

    /// Whether this is the address of an account of the configuration.
    pub(crate) fn is_configured(&self, address: &str) -> bool {
        self.configured.get(address) == Some(&ConfiguredName::Address)
    }

    /// Whether all accounts have the default quota.
    pub fn has_usual_quotas(&self) -> bool {
        self.quota == Quota::default() && self.quotas.is_empty()
    }

    /// The quota of the account with this address. Internal accounts of the machine have no limit.
    pub fn quota(&self, address: &str) -> Quota {
        match self.has_domain_of(address) {
            true => self.quotas.get(address).copied().unwrap_or(self.quota),
            false => Quota::Unlimited,
        }
    }

    /// The forwarding of the account with this address, if any.
    pub fn forwarding(&self, address: &str) -> Option<&Forwarding> {
        self.forwardings.get(address)
    }

    /// Whether mail of this account is forwarded.
    pub fn forwards(&self, store: &ShardedStore, account: AccountId) -> bool {
        // Most machines forward no mail.
        !self.forwardings.is_empty()
            && store.account(account).is_some_and(|known| self.forwarding(known.address).is_some())
    }

    /// The mailbox for the mail of an account: its inbox, or its outbox if the account forwards its
    /// mail.
    pub fn entrance(&self, store: &ShardedStore, account: AccountId) -> Recipient {
        if self.forwards(store, account) {
            entries::arriving(account)
        } else {
            Recipient::inbox(account)
        }
    }

    /// The daily sending limits of the account with this address.
    pub fn daily(&self, address: &str) -> Daily {
        self.dailies.get(address).copied().unwrap_or(self.daily)
    }

    /// Whether the configuration makes the account an administrator.
    pub fn is_administrator(&self, store: &ShardedStore, account: AccountId) -> bool {
        store
            .account(account)
            .is_some_and(|known| self.administrators.iter().any(|own| own == known.address))
    }

    /// The addresses of the accounts of administrators.
    pub fn administrators(&self) -> &[String] {
        &self.administrators
    }

    /// The account that gets the mail for the administrator.
    ///
    /// Errors: the account could not be made.
    pub fn postmaster(&self, store: &ShardedStore) -> Result<AccountId, RecipientRefusal> {
        store.find(&self.postmaster).ok_or(RecipientRefusal::Unavailable)
    }

    /// The account with this address, unless it is the reserved account.
    fn usual_account<'s>(
        &self,
        store: &'s ShardedStore,
        address: &str,
    ) -> Option<KnownAccount<'s>> {
        let known = store.account(store.find(address)?)?;
        let is_reserved = known.password_hash.is_empty()
            && configuration::is_reserved(known.address)
            && !self.is_configured(known.address);
        (!is_reserved).then_some(known)
    }

    /// The address of a sender, including the domain if the client left it out.
    pub fn complete<'a>(&'a self, path: &ReversePath<'a>) -> impl Iterator<Item = &'a str> {
        let domain = match path {
            ReversePath::Named(SmtpPath::LocalPart(_)) => self.domains.first(),
            _ => None,
        };
        iter::once(path.text()).chain(domain.into_iter().flat_map(|domain| ["@", &domain.name]))
    }
}

/// The daily limits of a user, or the default ones.
fn daily_of(configuration: &Configuration, user: Option<&User>) -> Daily {
    let limits = &configuration.limits;
    Daily {
        messages: user.and_then(|user| user.messages_per_day).unwrap_or(limits.messages_per_day),
        new_recipients: user
            .and_then(|user| user.new_recipients_per_day)
            .unwrap_or(limits.new_recipients_per_day),
    }
}

fn addresses<'a>(users: impl Iterator<Item = &'a User>) -> Vec<String> {
    users.map(|user| user.address.as_str().to_string()).collect()
}

/// The account that a client wants to log in to.
pub struct LoginAccount {
    /// The account with this name, if it exists.
    pub account: Option<AccountId>,
    /// The primary address of the account, whichever address was given. If there is no account, the
    /// canonical form of the given name.
    pub name: String,
}

/// The domains, as text for people.
impl fmt::Display for Directory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, domain) in self.domains.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(out, "{separator}{}", domain.name)?;
        }
        Ok(())
    }
}

/// Writes `local_part@domain` in lower case into `buffer`. `None`: it does not fit. Accounts are
/// created with addresses in this form.
fn canonical<'a>(
    local_part: &str,
    domain: &str,
    buffer: &'a mut [u8; ADDRESS_BYTES_MAX],
) -> Option<&'a str> {
    let mut at = 0;
    if local_part.is_ascii() {
        at = local_part.len();
        buffer.get_mut(..at)?.copy_from_slice(local_part.as_bytes());
    } else {
        for character in local_part.chars().flat_map(char::to_lowercase) {
            let encoded = at..at + character.len_utf8();
            character.encode_utf8(buffer.get_mut(encoded.clone())?);
            at = encoded.end;
        }
    }
    let end = at + 1 + domain.len();
    *buffer.get_mut(at)? = b'@';
    buffer.get_mut(at + 1..end)?.copy_from_slice(domain.as_bytes());
    let address = buffer.get_mut(..end)?;
    address.make_ascii_lowercase();
    core::str::from_utf8(address).ok()
}
