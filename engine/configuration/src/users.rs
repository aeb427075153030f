//! `[[user]]`: the accounts in the file.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mail::{HashError, MEMORY_KIB_MAX, WORK_KIB_MAX};

use super::document::{Item, Section, UncheckedSection};
use super::error::ConfigurationError;
use super::keys::keys;
use super::limits::{PER_DAY_MAX, PerDay, Quota, per_day};
use super::values::{HostName, MailAddress};
use super::{ALIASES_BYTES_MAX, ALIASES_MAX, DOMAINS_MAX, FORWARDS_MAX, USERS_MAX, is_reserved};

/// The longest password, in bytes. It must fit into a line of POP3 (RFC 2449 §4 allows 255),
/// together with the command.
pub const PASSWORD_BYTES_MAX: usize = 200;
/// The shortest password of an account, in characters. The webmail has the same limit.
const PASSWORD_CHARACTERS_MIN: usize = 8;

keys! {
    KEYS, described, "[[user]]", [],
    format!(
        "An account. It is created at the start if it does not exist. All keys are read at each \
        start, and changes take effect. An unchanged `password` or `password_hash` does not undo \
        a change that the owner has made in the webmail; see [accounts.md](accounts.md). The \
        removal of a section removes no account. There may be up to {USERS_MAX} sections."
    );
    "address" {
        form: "string",
        default: "none, the key is required",
        range: "an address in one of `domains`, which no other account has",
        example: r#""ada@example.org""#,
        meaning: "The address of the account, which is also its login name. Mail to an address \
            with `+` and further text after the name, such as `ada+shop@example.org`, is delivered \
            to the account, too.",
    }
    "password" {
        form: "string",
        default: "none, this or `password_hash` is required",
        range: format!(
            "at least {PASSWORD_CHARACTERS_MIN} characters and at most {PASSWORD_BYTES_MAX} bytes, \
            without control characters"
        ),
        example: r#""correct horse battery""#,
        meaning: "The password. The disk has it only as an argon2id hash and a SCRAM verifier.",
    }
    "password_hash" {
        form: "string",
        default: "none, this or `password` is required",
        range: format!(
            "an argon2id hash of version 19 in PHC form, with m at most {MEMORY_KIB_MAX}, and m \
            times t at most {WORK_KIB_MAX}"
        ),
        example: "\"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA\
            $4x0SWUhwAkvSPcWYL6FYLzDtcyMOW9ezJ5LRZr/0XW0\"",
        meaning: "The hash of the password. Such an account has no SCRAM verifier, so set \
            its mail programs to PLAIN.",
    }
    "aliases" {
        form: "list of strings",
        default: "no aliases",
        range: format!(
            "up to {ALIASES_MAX} addresses in `domains` that no other account has, with \
            {ALIASES_BYTES_MAX} bytes in all"
        ),
        example: r#"["ada.lovelace@example.org"]"#,
        meaning: "Other addresses of the account. It may also send from them.",
    }
    "catch_all" {
        form: "list of domain names",
        default: "mail to unknown recipients is rejected",
        range: format!("up to {DOMAINS_MAX} of `domains`, each in one account only"),
        example: r#"["example.org"]"#,
        meaning: "The domains for which the account gets the mail to recipients that do not exist.",
    }
    "quota" {
        form: "size",
        default: "`quota` in `[limits]`",
        range: "at least `\"1M\"`, or `\"unlimited\"`",
        example: r#""10G""#,
        meaning: "The size that the mailboxes of the account may have together.",
    }
    "forward" {
        form: "list of strings",
        default: "mail is not forwarded",
        range: format!("1 to {FORWARDS_MAX} addresses, none of the account's own"),
        example: r#"["ada@elsewhere.example"]"#,
        meaning: "The addresses that the account's mail is forwarded to, on this server or others. \
            Mail in Junk is not forwarded.",
    }
    "keep" {
        form: "boolean",
        default: "`true`",
        range: "`true` or `false`; needs `forward`",
        example: "true",
        meaning: "Whether forwarded mail is also delivered to the inbox of the account.",
    }
    "messages_per_day" {
        form: "integer or string",
        default: "`messages_per_day` in `[limits]`",
        range: format!("1 to {PER_DAY_MAX}, or `\"unlimited\"`"),
        example: "10_000",
        meaning: "The messages that the account may send in a day.",
    }
    "new_recipients_per_day" {
        form: "integer or string",
        default: "`new_recipients_per_day` in `[limits]`",
        range: format!("1 to {PER_DAY_MAX}, or `\"unlimited\"`"),
        example: "2_000",
        meaning: "The recipients on other servers to which the account may write in a day without \
            having written to them before.",
    }
    "admin" {
        form: "boolean",
        default: "`false`",
        range: "`true` or `false`",
        example: "true",
        meaning: "Whether the account is an administrator. An administrator replaces certificates, \
            and sees the queue of outgoing mail and holds or deletes messages in it. The first \
            administrator (or else the first account) gets the mail to `postmaster` and `abuse` in \
            each domain, unless an account has that address or alias. Without any account, such \
            mail is kept in an account that the console names.",
    }
}

/// An account. It is created if it does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// The address of the account, which is also its login name.
    pub address: MailAddress,
    /// The password in the file. It applies at first, and again when it is edited.
    pub password: Password,
    /// Other addresses of this account.
    pub aliases: Vec<MailAddress>,
    /// The domains for which this account gets the mail to unknown recipients.
    pub catch_all: Vec<HostName>,
    /// Whether the account is an administrator.
    pub is_administrator: bool,
    /// The quota of the account's mailboxes, if it differs from `[limits]`.
    pub quota: Option<Quota>,
    /// The addresses that the account's mail is forwarded to, if any.
    pub forwarding: Option<Forwarding>,
    /// The maximum number of messages that the account may send in a day, if it differs from
    /// `[limits]`.
    pub messages_per_day: Option<PerDay>,
    /// The maximum number of new external recipients in a day, if it differs from `[limits]`.
    pub new_recipients_per_day: Option<PerDay>,
}

/// The forwarding of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forwarding {
    /// The addresses: at least one, none twice, and none that the account itself has.
    pub addresses: Vec<MailAddress>,
    /// Whether the account keeps a copy.
    pub keep: Keep,
}

/// Whether forwarded mail is also delivered to the account's inbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// A copy is kept.
    Copy,
    /// No copy is kept.
    Nothing,
}

/// The configured password of an account.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password itself. It is hashed before it is stored.
    Plain(String),
    /// An argon2id hash in PHC form, with a checked bound on its cost.
    Argon2id(String),
}

/// Never prints the password, so that no log contains it.
impl core::fmt::Debug for Password {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Password::Plain(_) => "Plain(…)",
            Password::Argon2id(_) => "Argon2id(…)",
        })
    }
}

pub(super) fn users(
    root: &Section<'_, '_>,
    domains: &[HostName],
) -> Result<Vec<User>, ConfigurationError> {
    let mut taken = UsedNames::default();
    root.tables("user", USERS_MAX)?
        .into_iter()
        .map(|table| user(table, domains, &mut taken))
        .collect()
}

/// Names that only one account may have.
#[derive(Default)]
struct UsedNames {
    addresses: BTreeSet<MailAddress>,
    catch_alls: BTreeSet<HostName>,
}

fn user(
    table: UncheckedSection<'_, '_>,
    domains: &[HostName],
    taken: &mut UsedNames,
) -> Result<User, ConfigurationError> {
    let section = &table.section(KEYS)?;
    let item = section.required("address", "the account's address, such as \"ada@example.org\"")?;
    let address = address(&item, domains, &mut taken.addresses)?;
    let password = password(section)?;
    let aliases = match section.optional("aliases") {
        Some(list) => {
            let items = list.list(ALIASES_MAX, "a list of addresses")?;
            let aliases = items
                .iter()
                .map(|item| alias(item, domains, &mut taken.addresses))
                .collect::<Result<Vec<_>, _>>()?;
            if aliases.iter().map(|alias| alias.as_str().len()).sum::<usize>() > ALIASES_BYTES_MAX {
                let expected = format_args!("at most {ALIASES_BYTES_MAX} bytes of addresses");
                return Err(list.error("the aliases are too long", expected));
            }
            aliases
        }
        None => Vec::new(),
    };
    let catch_all = match section.optional("catch_all") {
        Some(list) => {
            let items = list.list(DOMAINS_MAX, "a list of domains")?;
            items
                .iter()
                .map(|item| caught(item, domains, &mut taken.catch_alls))
                .collect::<Result<Vec<_>, _>>()?
        }
        None => Vec::new(),
    };
    let is_administrator =
        section.optional("admin").map(|item| item.boolean()).transpose()?.unwrap_or(false);
    let quota = section.optional("quota").map(|item| item.parsed()).transpose()?;
    let is_own = |other: &MailAddress| *other == address || aliases.contains(other);
    let forwarding = forwarding(section, is_own)?;
    let messages_per_day = per_day(section, "messages_per_day")?;
    let new_recipients_per_day = per_day(section, "new_recipients_per_day")?;
    Ok(User {
        address,
        password,
        aliases,
        catch_all,
        is_administrator,
        quota,
        forwarding,
        messages_per_day,
        new_recipients_per_day,
    })
}

/// Reads the forwarding of an account. Its own addresses are not allowed.
fn forwarding(
    section: &Section<'_, '_>,
    is_own: impl Fn(&MailAddress) -> bool,
) -> Result<Option<Forwarding>, ConfigurationError> {
    let keep = section.optional("keep");
    let Some(list) = section.optional("forward") else {
        let alone = keep.map(|item| {
            item.error("`keep` has no effect without `forward`", "`forward` in the same section")
        });
        return alone.map_or(Ok(None), Err);
    };
    let items = list.list(FORWARDS_MAX, "a list of addresses")?;
    if items.is_empty() {
        return Err(list.error("the list of forwarding addresses is empty", "at least one address"));
    }
    let addresses: Vec<MailAddress> = super::parsed_once(&items, "an address")?;
    if let Some((_, item)) = addresses.iter().zip(&items).find(|(address, _)| is_own(address)) {
        return Err(item.error(
            "the account's mail is forwarded to the account itself",
            "an address of another account or server",
        ));
    }
    let is_kept = keep.map(|item| item.boolean()).transpose()?.unwrap_or(true);
    Ok(Some(Forwarding { addresses, keep: if is_kept { Keep::Copy } else { Keep::Nothing } }))
}

/// Reads an address or alias. It must be unique, and in one of the domains.
fn address(
    item: &Item<'_, '_>,
    domains: &[HostName],
    taken: &mut BTreeSet<MailAddress>,
) -> Result<MailAddress, ConfigurationError> {
    let address: MailAddress = item.parsed()?;
    if !domains.iter().any(|domain| domain.as_str() == address.domain()) {
        let what = format_args!("`{}` is not one of the domains", address.domain());
        return Err(item.error(what, "an address in a domain that `domains` names"));
    }
    if !taken.insert(address.clone()) {
        return Err(item.error(
            format_args!("`{address}` is used twice"),
            "an address that no other account has",
        ));
    }
    Ok(address)
}

/// Reads an alias. It must not be an address of a reserved account.
fn alias(
    item: &Item<'_, '_>,
    domains: &[HostName],
    taken: &mut BTreeSet<MailAddress>,
) -> Result<MailAddress, ConfigurationError> {
    let alias = address(item, domains, taken)?;
    if is_reserved(alias.as_str()) {
        return Err(item.error(
            format_args!("`{alias}` is kept for mail from the time without users"),
            "another alias, or a user with this address",
        ));
    }
    Ok(alias)
}

/// Reads a domain that the account is the catch-all of. No other account may be its catch-all.
fn caught(
    item: &Item<'_, '_>,
    domains: &[HostName],
    taken: &mut BTreeSet<HostName>,
) -> Result<HostName, ConfigurationError> {
    let domain: HostName = item.parsed()?;
    if !domains.contains(&domain) {
        return Err(item.error(
            format_args!("`{domain}` is not one of the domains"),
            "a domain that `domains` names",
        ));
    }
    if !taken.insert(domain.clone()) {
        return Err(item.error(
            format_args!("`{domain}` has two catch-all accounts"),
            "one catch-all account for each domain",
        ));
    }
    Ok(domain)
}

fn password(section: &Section<'_, '_>) -> Result<Password, ConfigurationError> {
    match (section.optional("password"), section.optional("password_hash")) {
        (Some(item), None) => plain_password(&item),
        (None, Some(item)) => password_hash(&item),
        (Some(_), Some(hash)) => {
            Err(hash.error("the account has both `password` and `password_hash`", "one of the two"))
        }
        (None, None) => {
            Err(section.error("the account has no password", "`password` or `password_hash`"))
        }
    }
}

fn plain_password(item: &Item<'_, '_>) -> Result<Password, ConfigurationError> {
    let text = credential(item, "password")?;
    if text.chars().count() < PASSWORD_CHARACTERS_MIN {
        let expected = format_args!("at least {PASSWORD_CHARACTERS_MIN} characters");
        return Err(item.error("the password is too short", expected));
    }
    Ok(Password::Plain(text))
}

/// Reads a user name or password that a client can send. `what`: "user" or "password".
pub(super) fn credential(item: &Item<'_, '_>, what: &str) -> Result<String, ConfigurationError> {
    let text = item.string(&format!("a {what}"))?;
    if text.is_empty() {
        return Err(item.error(format_args!("the {what} is empty"), "at least one character"));
    }
    if text.len() > PASSWORD_BYTES_MAX {
        let expected = format_args!("at most {PASSWORD_BYTES_MAX} bytes");
        return Err(item.error(format_args!("the {what} is too long"), expected));
    }
    if text.chars().any(char::is_control) {
        let what = format_args!("the {what} contains a control character");
        return Err(item.error(what, "no control characters"));
    }
    Ok(text.into())
}

fn password_hash(item: &Item<'_, '_>) -> Result<Password, ConfigurationError> {
    const FORM: &str = "an argon2id hash such as \"$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH\"";
    let text = item.string(FORM)?;
    let wrong = match mail::check_hash(text) {
        Ok(()) => return Ok(Password::Argon2id(text.into())),
        Err(HashError::Syntax) => {
            "this is not a password hash in PHC form, with parameters, salt and hash"
        }
        Err(HashError::Algorithm) => "the hash is not an argon2id hash of version 19",
        Err(HashError::TooCostly) => {
            let expected =
                format_args!("at most m={MEMORY_KIB_MAX}, and m times t at most {WORK_KIB_MAX}");
            return Err(item.error("the hash takes too much memory or time to check", expected));
        }
    };
    Err(item.error(wrong, FORM))
}
