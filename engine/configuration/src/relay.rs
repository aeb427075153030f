//! `[relay]`: the routes of outgoing mail. Mail is sent directly to the MX hosts, or through a
//! smarthost. There is a default, and some domains may have their own smarthosts
//! (`[[relay.domain]]`).
//!
//! Invariants:
//! - A smarthost is identified by host and port, and no two smarthosts have the same host and port.
//!   So all connections to one host and port use the same settings.
//! - Each domain is named only once.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use super::document::{Item, Section, UncheckedSection};
use super::error::ConfigurationError;
use super::keys::keys;
use super::users::{PASSWORD_BYTES_MAX, credential};
use super::values::{HostName, Prefix, Value};
use super::{AUTHORITY_FILES_MAX, DOMAINS_MAX, PREFIXES_MAX, SMARTHOSTS_MAX, parsed_once};

keys! {
    KEYS, described, "[relay]", ["domain"],
    "How mail to other servers leaves, see [sending.md](sending.md). Without this section it goes \
    directly to the MX hosts of each domain, on port 25.";
    "smarthost" {
        form: "string",
        default: "mail is sent directly",
        range: "the name or address of a host, a colon and a port; IPv6 in brackets",
        example: r#""mail.isp.example:587""#,
        meaning: "A host that all mail to other servers is sent through, for example because port \
            25 is blocked. An address is written as `\"10.0.0.9:25\"` or \
            `\"[2001:db8::9]:587\"`.",
    }
    "tls" {
        form: "string",
        default: "TLS is used if the smarthost offers it, and is required if there is a password",
        range: "`\"starttls\"`, `\"implicit\"` or `\"none\"`; needs `smarthost`",
        example: r#""starttls""#,
        meaning: "The use of TLS with the smarthost. `\"starttls\"` requires STARTTLS, \
            `\"implicit\"` starts with TLS, as on port 465, and `\"none\"` uses no TLS.",
    }
    "user" {
        form: "string",
        default: "no login",
        range: format!(
            "1 to {PASSWORD_BYTES_MAX} bytes without control characters; needs `smarthost` and `password`"
        ),
        example: r#""ada""#,
        meaning: "The user name for the smarthost. The login is by SCRAM-SHA-256 if the smarthost \
            offers it, else by PLAIN or LOGIN.",
    }
    "password" {
        form: "string",
        default: "no login",
        range: format!("1 to {PASSWORD_BYTES_MAX} bytes without control characters; needs `smarthost` and `user`"),
        example: r#""another one""#,
        meaning: "The password for the smarthost. It is sent only to a host whose certificate is \
            valid for its name, unless `tls` is `\"none\"`.",
    }
    "ca" {
        form: "file name or list of file names",
        default: "only the certificate authorities of the web",
        range: format!("up to {AUTHORITY_FILES_MAX} PEM files, relative to the configuration"),
        example: r#""isp.pem""#,
        meaning: "Certificate authorities that are trusted in addition to those of the web. A file \
            may also contain the very certificate that the smarthost shows.",
    }
    "private_networks" {
        form: "list of strings",
        default: "no networks",
        range: format!("up to {PREFIXES_MAX} prefixes, none twice"),
        example: r#"["10.0.0.0/24"]"#,
        meaning: "Networks in which hosts that the DNS records of other domains name may be \
            contacted. Otherwise the server contacts no such host at a private, link-local, shared \
            or otherwise reserved address. A smarthost or a filter may have any address.",
    }
}

keys! {
    DOMAIN_KEYS, domain_described, "[[relay.domain]]", [],
    format!(
        "How mail to some domains leaves, instead of what `[relay]` says. There may be up to \
        {SMARTHOSTS_MAX} sections. Each has either `smarthost` or `direct = true`. A smarthost is \
        named once in the file, and so is a domain."
    );
    "domains" {
        form: "list of domain names",
        default: "none, the key is required",
        range: format!("1 to {DOMAINS_MAX} names"),
        example: r#"["example.com", "example.net"]"#,
        meaning: "The domains. Subdomains are not included.",
    }
    "direct" {
        form: "boolean",
        default: "`false`",
        range: "`true` or `false`",
        example: "true",
        meaning: "Whether the mail goes directly to the MX hosts of the domain.",
    }
    "smarthost" {
        form: "string",
        default: "none, `direct = true` is required",
        range: "as in `[relay]`",
        example: r#""smtp.example.com:465""#,
        meaning: "The smarthost for these domains.",
    }
    "tls" {
        form: "string",
        default: "TLS is used if the smarthost offers it, and is required if there is a password",
        range: "`\"starttls\"`, `\"implicit\"` or `\"none\"`; needs `smarthost`",
        example: r#""implicit""#,
        meaning: "The use of TLS with this smarthost.",
    }
    "user" {
        form: "string",
        default: "no login",
        range: format!(
            "1 to {PASSWORD_BYTES_MAX} bytes without control characters; needs `smarthost` and `password`"
        ),
        example: r#""ada""#,
        meaning: "The user name for this smarthost.",
    }
    "password" {
        form: "string",
        default: "no login",
        range: format!("1 to {PASSWORD_BYTES_MAX} bytes without control characters; needs `smarthost` and `user`"),
        example: r#""a third one""#,
        meaning: "The password for this smarthost.",
    }
}

/// The routes of outgoing mail.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Relay {
    /// The route for all domains without their own route.
    default_way: Way,
    /// The routes of the domains that have their own.
    others: BTreeMap<HostName, Way>,
    /// The files of authorities that are trusted in addition to the authorities of the web.
    pub authorities: Vec<AuthorityFile>,
    /// The networks in which hosts may be contacted although their addresses are not public.
    pub private_networks: Vec<Prefix>,
}

/// The route of the mail to a domain.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Way {
    /// Directly to the MX hosts of the domain.
    #[default]
    Direct,
    /// Through a smarthost.
    By(Arc<Smarthost>),
}

/// A host that relays our mail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Smarthost {
    /// The host and port of the smarthost.
    pub place: HostAndPort,
    /// The use of TLS with the smarthost.
    pub tls: SmarthostTls,
    /// The login at the smarthost, if it requires one.
    pub login: Option<SmarthostLogin>,
}

/// A host and its port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostAndPort {
    /// The host.
    pub host: RelayHost,
    /// The port.
    pub port: u16,
}

/// A host, by its name or its address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RelayHost {
    /// By its name.
    Name(HostName),
    /// By its address.
    Address(IpAddr),
}

/// The use of TLS with a smarthost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmarthostTls {
    /// TLS is used if the host offers it. With a password, TLS is required.
    IfOffered,
    /// STARTTLS is required.
    StartTls,
    /// TLS from the start of the connection.
    Implicit,
    /// Plaintext.
    None,
}

/// The login at a smarthost.
#[derive(Clone, PartialEq, Eq)]
pub struct SmarthostLogin {
    /// The user name.
    pub user: String,
    /// The password.
    pub password: String,
}

/// A file of authorities.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthorityFile {
    /// The name of the file in the configuration.
    pub file: String,
    /// The line of the configuration that names the file.
    pub line: usize,
}

impl fmt::Debug for SmarthostLogin {
    /// Leaves out the password, so that no log contains it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SmarthostLogin").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Relay {
    /// The route of mail to a domain. `domain`: in lower case.
    pub fn way_to(&self, domain: &str) -> &Way {
        self.others.get(domain).unwrap_or(&self.default_way)
    }

    /// All smarthosts, each once, the default first.
    pub fn smarthosts(&self) -> Vec<&Smarthost> {
        let mut all: Vec<&Smarthost> = Vec::new();
        for way in core::iter::once(&self.default_way).chain(self.others.values()) {
            if let Way::By(smarthost) = way
                && !all.iter().any(|known| known.place == smarthost.place)
            {
                all.push(smarthost);
            }
        }
        all
    }
}

impl fmt::Display for HostAndPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            RelayHost::Name(name) => write!(out, "{name}:{}", self.port),
            RelayHost::Address(IpAddr::V6(address)) => write!(out, "[{address}]:{}", self.port),
            RelayHost::Address(address) => write!(out, "{address}:{}", self.port),
        }
    }
}

impl Value for HostAndPort {
    const FORM: &'static str = "a host and its port, such as \"mail.isp.example:587\", \"10.0.0.9:25\" or \"[2001:db8::9]:587\"";

    fn parse(text: &str) -> Result<HostAndPort, &'static str> {
        let bracketed = text
            .strip_prefix('[')
            .map(|rest| rest.split_once("]:").ok_or("the closing bracket is missing"));
        let (host, port) = match bracketed {
            Some(parts) => parts?,
            None => text.rsplit_once(':').ok_or("the port is missing")?,
        };
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port
            .parse()
            .ok()
            .filter(|port| is_number && *port > 0)
            .ok_or("the text after the colon is not a port number")?;
        let host = match host.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) if bracketed.is_none() => {
                return Err("an IPv6 address must be in brackets");
            }
            Ok(_) => RelayHost::Address(Value::parse(host)?),
            Err(_) if bracketed.is_some() => {
                return Err("the text in brackets is not an IPv6 address");
            }
            Err(_) => RelayHost::Name(HostName::parse(host)?),
        };
        Ok(HostAndPort { host, port })
    }
}

impl Value for SmarthostTls {
    const FORM: &'static str =
        "\"starttls\", \"implicit\" or \"none\"; without `tls`, TLS is used if it is offered";

    fn parse(text: &str) -> Result<SmarthostTls, &'static str> {
        match text {
            "starttls" => Ok(SmarthostTls::StartTls),
            "implicit" => Ok(SmarthostTls::Implicit),
            "none" => Ok(SmarthostTls::None),
            _ => Err("this is not a valid TLS mode"),
        }
    }
}

const SMARTHOST_KEYS: [&str; 4] = ["smarthost", "tls", "user", "password"];

pub(super) fn relay(table: UncheckedSection<'_, '_>) -> Result<Relay, ConfigurationError> {
    let section = &table.section(KEYS)?;
    let mut places = BTreeSet::new();
    let default_way = smarthost(section, &mut places)?.map_or(Way::Direct, Way::By);
    let mut others = BTreeMap::new();
    for table in section.tables("domain", SMARTHOSTS_MAX)? {
        domains(table, &mut others, &mut places)?;
    }
    let authorities = match section.optional("ca") {
        Some(item) => authorities(&item)?,
        None => Vec::new(),
    };
    let private_networks = match section.optional("private_networks") {
        Some(item) => parsed_once(&item.list(PREFIXES_MAX, "a list of prefixes")?, "a prefix")?,
        None => Vec::new(),
    };
    Ok(Relay { default_way, others, authorities, private_networks })
}

fn domains(
    table: UncheckedSection<'_, '_>,
    others: &mut BTreeMap<HostName, Way>,
    places: &mut BTreeSet<HostAndPort>,
) -> Result<(), ConfigurationError> {
    let section = &table.section(DOMAIN_KEYS)?;
    let list = section.required(
        "domains",
        "the domains to which this section applies, such as [\"example.org\"]",
    )?;
    let items = list.list(DOMAINS_MAX, "a list of domains")?;
    if items.is_empty() {
        return Err(list.error(
            "the list of domains is empty",
            "at least one domain, such as [\"example.org\"]",
        ));
    }
    let is_direct =
        section.optional("direct").map(|item| item.boolean()).transpose()?.unwrap_or_default();
    let way = match (is_direct, smarthost(section, places)?) {
        (true, None) => Way::Direct,
        (false, Some(smarthost)) => Way::By(smarthost),
        (true, Some(_)) => {
            return Err(
                section.error("`direct` and `smarthost` cannot be used together", "one of the two")
            );
        }
        (false, None) => {
            return Err(section.error(
                "the section says neither `direct` nor `smarthost`",
                "`direct = true` or `smarthost`",
            ));
        }
    };
    for item in &items {
        let name: HostName = item.parsed()?;
        if others.contains_key(&name) {
            return Err(
                item.error(format_args!("`{name}` is listed twice"), "each domain only once")
            );
        }
        others.insert(name, way.clone());
    }
    Ok(())
}

/// Reads the smarthost of a section, if the section names one.
fn smarthost(
    section: &Section<'_, '_>,
    places: &mut BTreeSet<HostAndPort>,
) -> Result<Option<Arc<Smarthost>>, ConfigurationError> {
    let Some(item) = section.optional("smarthost") else {
        let of_none =
            SMARTHOST_KEYS.into_iter().find_map(|key| Some((key, section.optional(key)?)));
        let refuse = |(key, item): (&str, Item<'_, '_>)| {
            Err(item.error(format_args!("`{key}` needs `smarthost`"), HostAndPort::FORM))
        };
        return of_none.map_or(Ok(None), refuse);
    };
    let place: HostAndPort = item.parsed()?;
    if !places.insert(place.clone()) {
        return Err(item.error(
            format_args!("`{place}` is listed twice"),
            "one section for this smarthost, with all its domains",
        ));
    }
    let tls = section
        .optional("tls")
        .map(|item| item.parsed())
        .transpose()?
        .unwrap_or(SmarthostTls::IfOffered);
    let login = match (section.optional("user"), section.optional("password")) {
        (None, None) => None,
        (Some(user), Some(password)) => Some(SmarthostLogin {
            user: credential(&user, "user")?,
            password: credential(&password, "password")?,
        }),
        (Some(user), None) => {
            return Err(
                user.error("`password` is missing", "both `user` and `password`, or neither")
            );
        }
        (None, Some(password)) => {
            return Err(
                password.error("`user` is missing", "both `user` and `password`, or neither")
            );
        }
    };
    Ok(Some(Arc::new(Smarthost { place, tls, login })))
}

fn authorities(item: &Item<'_, '_>) -> Result<Vec<AuthorityFile>, ConfigurationError> {
    const EXPECTED: &str =
        "the file of an authority's certificate, such as \"ca.pem\", or a list of such";
    let items = item.one_or_several(AUTHORITY_FILES_MAX, EXPECTED)?;
    let file = |item: &Item<'_, '_>| match item.string(EXPECTED)? {
        "" => Err(item.error("the name of the file is empty", EXPECTED)),
        file => Ok(AuthorityFile { file: file.to_string(), line: item.line() }),
    };
    items.iter().map(file).collect()
}
