//! The configuration: the content of `barepost.toml`, parsed into valid values.
//!
//! The file is parsed twice. The command line parses the file before a machine boots, so that a
//! wrong file is refused on the terminal. The machine parses the same text again, because it does
//! not trust its input.
//!
//! Invariants:
//! - Every [`Configuration`] is valid. Each address belongs to one of the domains, and no address
//!   occurs twice. A client can send each password. Each network address fits its prefix.
//! - No part of the file is ignored silently: an unknown key is an error.
//! - Every error names the line, the problem and the expected form.
//! - Names of hosts, domains and mailboxes are kept in lower case.
//!
//! Implements: RFC 1123 §2.1 (host names), RFC 5321 §4.1.2 and RFC 6531 §3.3 (addresses), RFC 4632
//! §3.1 (prefixes).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod abuse;
mod certificates;
mod disk;
mod document;
mod error;
mod filter;
mod keys;
mod limits;
mod network;
pub mod pack;
mod reference;
mod relay;
mod users;
mod values;
mod web;

#[cfg(test)]
mod tests;

pub use abuse::Abuse;
pub use certificates::{CertificateFiles, NamedFile};
pub use disk::{DISK_FORMAT, DiskFormat};
pub use error::ConfigurationError;
pub use filter::{FilterConfig, WhenAway};
pub use limits::{Limits, PER_DAY_MAX, PerDay, Quota};
pub use network::{Access, AccessRange, Network};
pub use reference::reference;
pub use relay::{
    AuthorityFile, HostAndPort, Relay, RelayHost, Smarthost, SmarthostLogin, SmarthostTls, Way,
};
pub use users::{Forwarding, Keep, PASSWORD_BYTES_MAX, Password, User};
pub use values::{HostName, InterfaceAddress, MailAddress, Prefix};
pub use web::{POLICY_PATH, PolicyMode, WebSettings};

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use document::{Document, Item, Section};

/// The smallest memory that one core needs, in bytes.
const MEMORY_BYTES_MIN: u64 = 96 << 20;
/// The least memory that each further core needs, in bytes.
const MEMORY_BYTES_MORE: u64 = 48 << 20;

/// The smallest memory for a machine with `cores` cores, in bytes.
pub const fn memory_bytes_min(cores: u8) -> u64 {
    MEMORY_BYTES_MIN + (cores.saturating_sub(1) as u64) * MEMORY_BYTES_MORE
}

/// The longest configuration that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// The maximum number of domains that one server serves.
pub const DOMAINS_MAX: usize = 256;
/// The maximum number of accounts that the file may name. The disk may have more accounts.
pub const USERS_MAX: usize = 4096;
/// The maximum number of aliases of one account.
pub const ALIASES_MAX: usize = 64;
/// The maximum length of all aliases of one account together, in bytes. The disk has all addresses
/// of an account in one block.
pub const ALIASES_BYTES_MAX: usize = 2_800;
/// The maximum number of forwarding addresses of one account.
pub const FORWARDS_MAX: usize = 7;
/// The maximum number of prefixes in one list of `[access]` or `[relay]`.
pub const PREFIXES_MAX: usize = 64;
/// The maximum number of DNS lists in each setting of `[abuse]`.
pub const LISTS_MAX: usize = 4;
/// The maximum number of IPv6 addresses of this machine.
pub const IPV6_ADDRESSES_MAX: usize = 4;
/// The maximum number of addresses of this machine, of both families together.
pub const ADDRESSES_MAX: usize = 1 + IPV6_ADDRESSES_MAX;
/// The maximum number of certificates.
pub const CERTIFICATES_MAX: usize = 16;
/// The maximum number of name servers.
pub const DNS_SERVERS_MAX: usize = 4;
/// The maximum number of sections `[[relay.domain]]`.
pub const SMARTHOSTS_MAX: usize = 64;
/// The maximum number of files of authorities.
pub const AUTHORITY_FILES_MAX: usize = 16;

keys::keys! {
    KEYS, described, "",
    ["network", "user", "access", "abuse", "disk", "filter", "limits", "web", "tls", "relay"],
    "These two keys stand at the top of the file, before the first section.";
    "hostname" {
        form: "string",
        default: "none, the key is required",
        range: "a full host name",
        example: r#""mail.example.org""#,
        meaning: "The name of this server. It is in the greeting of SMTP, and MX records name it. \
            An internationalized name is written with its A-labels, such as \
            `xn--bcher-kva.example`.",
    }
    "domains" {
        form: "list of domain names",
        default: "none, the key is required",
        range: format!("1 to {DOMAINS_MAX} names, none twice"),
        example: r#"["example.org"]"#,
        meaning: "The domains that this server accepts mail for. Every address and alias of an \
            account is in one of them.",
    }
}

/// The content of `barepost.toml`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// The host name of the server, used in its greeting.
    pub hostname: HostName,
    /// The domains that the server accepts mail for. At least one, none twice.
    pub domains: Vec<HostName>,
    /// The addresses of the machine. `None`: DHCP and router advertisements.
    pub network: Option<Network>,
    /// The accounts that are created if they do not exist.
    pub users: Vec<User>,
    /// The clients with more rights than other external clients.
    pub access: Access,
    /// The limits and checks for unauthenticated external clients.
    pub abuse: Abuse,
    /// The format that the disk should have.
    pub disk: DiskFormat,
    /// The external mail filter, if there is one.
    pub filter: Option<FilterConfig>,
    /// The limits of accounts.
    pub limits: Limits,
    /// The settings of the HTTP service.
    pub web: WebSettings,
    /// The files of TLS certificates, the default one first. If empty, the command that starts the
    /// machine makes a certificate.
    pub certificates: Vec<CertificateFiles>,
    /// The routes of outgoing mail: directly, or through smarthosts.
    pub relay: Relay,
}

impl Configuration {
    /// Parses and checks the text of a `barepost.toml`.
    ///
    /// Errors: the first error, with its place.
    pub fn parse(text: &str) -> Result<Configuration, ConfigurationError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ConfigurationError::new(
                text,
                TEXT_BYTES_MAX,
                "the file is too long",
                "at most 1 MiB",
            ));
        }
        let document = Document::parse(text)?;
        let root = document.root().section(KEYS)?;

        let hostname = root
            .required("hostname", "the server's own name, such as \"mail.example.org\"")?
            .parsed()?;
        let domains = domains(&root)?;
        let network = root.table("network")?.map(network::network).transpose()?;
        let users = users::users(&root, &domains)?;
        let access = root.table("access")?.map(network::access).transpose()?.unwrap_or_default();
        let abuse = root.table("abuse")?.map(abuse::abuse).transpose()?.unwrap_or_default();
        let disk = root.table("disk")?.map(disk::format).transpose()?.unwrap_or_default();
        let filter = root.table("filter")?.map(filter::filter).transpose()?;
        let limits = root.table("limits")?.map(limits::limits).transpose()?.unwrap_or_default();
        let web = root.table("web")?.map(web::web).transpose()?.unwrap_or_default();
        let certificates = certificates::certificates(&root)?;
        let relay = root.table("relay")?.map(relay::relay).transpose()?.unwrap_or_default();
        Ok(Configuration {
            hostname,
            domains,
            network,
            users,
            access,
            abuse,
            disk,
            filter,
            limits,
            web,
            certificates,
            relay,
        })
    }

    /// Whether `domain` is one of the domains that the server accepts mail for, in any case of
    /// letters.
    pub fn serves(&self, domain: &str) -> bool {
        self.domains.iter().any(|served| served.as_str().eq_ignore_ascii_case(domain))
    }

    /// The address of the account that gets the mail to `postmaster` and `abuse`, in each domain
    /// where no account has that address. It is the first administrator, or the first account if
    /// there is no administrator, or the reserved account if there is no account. RFC 5321 §4.5.1
    /// requires that such mail is always accepted.
    pub fn postmaster(&self) -> String {
        let user = self.users.iter().find(|user| user.is_administrator);
        match user.or_else(|| self.users.first()) {
            Some(user) => user.address.as_str().to_string(),
            None => self.reserved_address(),
        }
    }

    /// The address of the reserved account, in the first domain. The account has no password, and
    /// keeps the mail to the administrator while the configuration has no accounts. No other
    /// account is likely to want its name. So an administrator can have the address of the
    /// postmaster later, and the reserved account can become a usual one, so that its mail is read.
    pub fn reserved_address(&self) -> String {
        let domain = self.domains.first().map_or("", HostName::as_str);
        [RESERVED, domain].concat()
    }
}

/// The address of the reserved account, without its domain.
const RESERVED: &str = "kept-for-postmaster@";

/// Whether this is the address of the reserved account, whichever domain is the first one.
pub fn is_reserved(address: &str) -> bool {
    address.starts_with(RESERVED)
}

fn domains(root: &Section<'_, '_>) -> Result<Vec<HostName>, ConfigurationError> {
    let list = root.required("domains", "a list of the mail domains, such as [\"example.org\"]")?;
    let items = list.list(DOMAINS_MAX, "a list of domain names")?;
    if items.is_empty() {
        return Err(list.error(
            "the list of domains is empty",
            "at least one domain, such as [\"example.org\"]",
        ));
    }
    parsed_once(&items, "a domain")
}

/// Parses every item of a list, and refuses a value that occurs twice.
fn parsed_once<T: values::Value + PartialEq>(
    items: &[Item<'_, '_>],
    what: &str,
) -> Result<Vec<T>, ConfigurationError> {
    let mut parsed: Vec<T> = Vec::with_capacity(items.len());
    for item in items {
        let value: T = item.parsed()?;
        if parsed.contains(&value) {
            return Err(
                item.error(format_args!("{what} is listed twice"), "each of them only once")
            );
        }
        parsed.push(value);
    }
    Ok(parsed)
}
