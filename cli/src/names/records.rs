//! The DNS records that a machine and its mail domains need, so that mail reaches the machine and
//! other servers trust the mail that it sends.

use std::fmt;
use std::net::IpAddr;

use configuration::{Configuration, HostName, POLICY_PATH, Relay, RelayHost, Smarthost};
use dkim::SigningKey;
use dns::{Name, NotAName, Question, Record, RecordKind};

use super::is_public;

/// The most bytes of one string in a TXT record (RFC 1035 §3.3).
const STRING_BYTES_MAX: usize = 255;

/// Mail services, under the names where programs look for them (RFC 6186, RFC 8314 §5.1), and their
/// ports. `None`: the machine does not have the service.
const SERVICES: [(&str, Option<u16>); 6] = [
    ("_submissions._tcp", Some(465)),
    ("_submission._tcp", Some(587)),
    ("_pop3s._tcp", Some(995)),
    ("_pop3._tcp", Some(110)),
    ("_imaps._tcp", None),
    ("_imap._tcp", None),
];

/// The 64-bit FNV hash (Fowler, Noll and Vo). It distinguishes policies, which are not secret.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// A record that should exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    pub(super) owner: Name,
    pub(super) record: Record,
    /// The purpose of the record, in a sentence.
    pub(super) purpose: String,
}

/// All records that should exist, those of the machine first. `addresses`: the machine's public
/// addresses. If empty, the result has no address records.
///
/// Errors: a name is too long.
pub(super) fn wanted(
    configuration: &Configuration,
    keys: &[SigningKey],
    addresses: &[IpAddr],
) -> Result<Vec<Wanted>, NotAName> {
    let host = Name::parse(configuration.hostname.as_str())?;
    let mut records = of_machine(configuration, &host, addresses);
    for domain in &configuration.domains {
        records.extend(of_domain(domain, keys, &host, &configuration.relay)?);
        if let Some(policy) = configuration.web.policy(&configuration.hostname) {
            records.extend(of_policy(domain, &policy, addresses)?);
        }
    }
    Ok(records)
}

fn of_machine(configuration: &Configuration, host: &Name, addresses: &[IpAddr]) -> Vec<Wanted> {
    let mut records = Vec::new();
    for address in addresses {
        let record = Record::Address(*address);
        records.push(Wanted::new(host, record, "The address of this machine.".into()));
        let purpose = format!(
            "The host name of this address. The address record of that name must lead back to {address}, and the provider of the address can set this record."
        );
        records.push(Wanted::new(&Name::reverse(*address), Record::Pointer(host.clone()), purpose));
    }
    // If the host name is also a mail domain, `of_domain` adds its SPF record.
    if !configuration.serves(host.as_str()) {
        let purpose = "Mail from the machine's own name comes only from its own addresses (SPF).";
        records.push(Wanted::new(host, text("v=spf1 a -all"), purpose.into()));
    }
    records
}

fn of_domain(
    domain: &HostName,
    keys: &[SigningKey],
    host: &Name,
    relay: &Relay,
) -> Result<Vec<Wanted>, NotAName> {
    let domain = domain.as_str();
    let below = |label: &str| Name::parse(&format!("{label}.{domain}"));
    let name = Name::parse(domain)?;
    let mut records = vec![
        Wanted::new(
            &name,
            Record::Exchanger { preference: 10, host: host.clone() },
            format!("Mail for {domain} is delivered to this machine."),
        ),
        senders(&name, relay),
    ];
    for key in keys {
        let purpose = "The key that verifies the DKIM signatures of this machine.";
        records.push(Wanted::new(&key.name_at(&name)?, text(&key.record()), purpose.into()));
    }
    // A message is signed by the domain of its author, and its envelope sender has that domain too.
    let policy = format!("v=DMARC1; p=reject; adkim=s; aspf=s; rua=mailto:postmaster@{domain}");
    let purpose = "Other servers should reject mail from this domain that passes neither DKIM nor SPF, and send reports to the postmaster (DMARC).";
    records.push(Wanted::new(&below("_dmarc")?, text(&policy), purpose.into()));
    let reports = format!("v=TLSRPTv1; rua=mailto:postmaster@{domain}");
    let purpose = "Other servers send reports about TLS problems to the postmaster (TLS-RPT).";
    records.push(Wanted::new(&below("_smtp._tls")?, text(&reports), purpose.into()));
    for (service, port) in SERVICES {
        let (weight, port, host, purpose) = match port {
            Some(port) => (1, port, host.clone(), "Mail programs find this service here."),
            None => (0, 0, Name::parse("")?, "This service is not offered."),
        };
        records.push(Wanted::new(
            &below(service)?,
            Record::Service { priority: 0, weight, port, host },
            purpose.into(),
        ));
    }
    Ok(records)
}

/// The records by which other servers find the MTA-STS policy of a domain (RFC 8461 §3). The host
/// `mta-sts` below the domain serves it.
fn of_policy(
    domain: &HostName,
    policy: &str,
    addresses: &[IpAddr],
) -> Result<Vec<Wanted>, NotAName> {
    let below = |label: &str| Name::parse(&format!("{label}.{domain}"));
    // The version changes with the policy.
    let version = policy
        .bytes()
        .fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    let announced = text(&format!("v=STSv1; id={version:016x};"));
    let purpose = format!(
        "The MTA-STS policy of {domain} is at https://mta-sts.{domain}{POLICY_PATH}. The certificate must be valid for that name, too."
    );
    let mut records = vec![Wanted::new(&below("_mta-sts")?, announced, purpose)];
    let server = below("mta-sts")?;
    for address in addresses {
        records.push(Wanted::new(
            &server,
            Record::Address(*address),
            "This machine serves the MTA-STS policy.".into(),
        ));
    }
    Ok(records)
}

/// The SPF record: which addresses send mail of the domain.
fn senders(domain: &Name, relay: &Relay) -> Wanted {
    let smarthosts = relay.smarthosts();
    let terms: String =
        smarthosts.iter().filter_map(|smarthost| Some(format!(" {}", term(smarthost)?))).collect();
    let name = domain.as_str();
    let purpose = match smarthosts.first() {
        None => format!("Mail from {name} comes only from its MX hosts (SPF)."),
        Some(first) => format!(
            "Mail from {name} comes only from its MX hosts and the smarthost (SPF). If {} sends mail from other addresses, use what its operator recommends instead, such as include:spf.example.org.",
            first.place
        ),
    };
    Wanted::new(domain, text(&format!("v=spf1 mx{terms} -all")), purpose)
}

/// The SPF term that allows a smarthost to send (RFC 7208 §5). `None` for a private address: the
/// smarthost's public address is unknown.
fn term(smarthost: &Smarthost) -> Option<String> {
    match &smarthost.place.host {
        RelayHost::Name(name) => Some(format!("a:{name}")),
        RelayHost::Address(address) if !is_public(address) => None,
        RelayHost::Address(address @ IpAddr::V4(_)) => Some(format!("ip4:{address}")),
        RelayHost::Address(address @ IpAddr::V6(_)) => Some(format!("ip6:{address}")),
    }
}

fn text(text: &str) -> Record {
    Record::Text(text.as_bytes().into())
}

impl Wanted {
    fn new(owner: &Name, record: Record, purpose: String) -> Wanted {
        Wanted { owner: owner.clone(), record, purpose }
    }

    /// The DNS question that finds the record.
    pub(super) fn question(&self) -> Question {
        let kind = match &self.record {
            Record::Address(IpAddr::V4(_)) => RecordKind::Ipv4,
            Record::Address(IpAddr::V6(_)) => RecordKind::Ipv6,
            Record::Exchanger { .. } => RecordKind::Exchanger,
            Record::Text(_) => RecordKind::Text,
            Record::Pointer(_) => RecordKind::Pointer,
            Record::Tlsa { .. } => RecordKind::Tlsa,
            Record::Service { .. } => RecordKind::Service,
        };
        Question { name: self.owner.clone(), kind }
    }
}

/// Writes the record as a line of a zone file (RFC 1035 §5.1).
impl fmt::Display for Wanted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}. IN {}", self.owner.as_str(), Written(&self.record))
    }
}

/// The part of a zone file's line after the name.
pub(super) struct Written<'a>(pub(super) &'a Record);

impl fmt::Display for Written<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Record::Address(address @ IpAddr::V4(_)) => write!(out, "A {address}"),
            Record::Address(address @ IpAddr::V6(_)) => write!(out, "AAAA {address}"),
            Record::Exchanger { preference, host } => write!(out, "MX {preference} {}", Full(host)),
            Record::Pointer(name) => write!(out, "PTR {}", Full(name)),
            Record::Service { priority, weight, port, host } => {
                write!(out, "SRV {priority} {weight} {port} {}", Full(host))
            }
            Record::Text(text) => {
                out.write_str("TXT")?;
                // An empty text is written as one empty string.
                let strings =
                    text.chunks(STRING_BYTES_MAX).chain(text.is_empty().then_some(&[][..]));
                strings.into_iter().try_for_each(|string| write!(out, " \"{}\"", quoted(string)))
            }
            Record::Tlsa { usage, selector, matching, data } => {
                write!(out, "TLSA {usage} {selector} {matching} ")?;
                data.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
        }
    }
}

/// A name with its final dot.
struct Full<'a>(&'a Name);

impl fmt::Display for Full<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.", self.0.as_str())
    }
}

/// Quotes text. Characters that are not allowed between quotes are written as numbers.
fn quoted(bytes: &[u8]) -> String {
    let write = |byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\{byte:03}"),
    };
    bytes.iter().map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::names::tests::key;

    fn lines(configuration: &str, addresses: &[&str]) -> Vec<String> {
        let configuration = Configuration::parse(configuration).unwrap();
        let addresses: Vec<IpAddr> =
            addresses.iter().map(|address| address.parse().unwrap()).collect();
        wanted(&configuration, &[key("one", 1), key("two", 2)], &addresses)
            .unwrap()
            .iter()
            .map(Wanted::to_string)
            .collect()
    }

    #[test]
    fn all_records_of_machine_and_domain_are_listed() {
        let lines = lines(
            "hostname = 'mail.a.test'\ndomains = ['a.test']\n",
            &["192.0.2.7", "2001:db8::7"],
        );
        assert_eq!(
            lines,
            [
                "mail.a.test. IN A 192.0.2.7",
                "7.2.0.192.in-addr.arpa. IN PTR mail.a.test.",
                "mail.a.test. IN AAAA 2001:db8::7",
                "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. IN PTR mail.a.test.",
                "mail.a.test. IN TXT \"v=spf1 a -all\"",
                "a.test. IN MX 10 mail.a.test.",
                "a.test. IN TXT \"v=spf1 mx -all\"",
                &format!("one._domainkey.a.test. IN TXT \"{}\"", key("one", 1).record()),
                &format!("two._domainkey.a.test. IN TXT \"{}\"", key("two", 2).record()),
                "_dmarc.a.test. IN TXT \"v=DMARC1; p=reject; adkim=s; aspf=s; rua=mailto:postmaster@a.test\"",
                "_smtp._tls.a.test. IN TXT \"v=TLSRPTv1; rua=mailto:postmaster@a.test\"",
                "_submissions._tcp.a.test. IN SRV 0 1 465 mail.a.test.",
                "_submission._tcp.a.test. IN SRV 0 1 587 mail.a.test.",
                "_pop3s._tcp.a.test. IN SRV 0 1 995 mail.a.test.",
                "_pop3._tcp.a.test. IN SRV 0 1 110 mail.a.test.",
                "_imaps._tcp.a.test. IN SRV 0 0 0 .",
                "_imap._tcp.a.test. IN SRV 0 0 0 .",
            ]
        );
    }

    #[test]
    fn host_named_like_its_domain_has_one_spf_policy() {
        let lines = lines("hostname = 'a.test'\ndomains = ['a.test']\n", &[]);
        let policies: Vec<_> = lines.iter().filter(|line| line.contains("spf1")).collect();
        assert_eq!(policies, ["a.test. IN TXT \"v=spf1 mx -all\""]);
    }

    #[test]
    fn a_policy_is_announced_with_a_version_that_changes_with_it() {
        let announced = |host: &str, mode: &str| {
            let text =
                format!("hostname = '{host}'\ndomains = ['a.test']\n[web]\nmta_sts = '{mode}'\n");
            let found = lines(&text, &["192.0.2.7"]);
            assert!(found.contains(&"mta-sts.a.test. IN A 192.0.2.7".to_string()), "{found:?}");
            found.into_iter().find(|line| line.starts_with("_mta-sts.a.test. IN TXT")).unwrap()
        };
        let first = announced("mail.a.test", "enforce");
        assert!(
            first.starts_with("_mta-sts.a.test. IN TXT \"v=STSv1; id=") && first.ends_with(";\""),
            "{first}"
        );
        assert_eq!(first, announced("mail.a.test", "enforce"));
        assert_ne!(first, announced("mail.a.test", "testing"));
        assert_ne!(first, announced("mx.a.test", "enforce"));
        let text = first.split('"').nth(1).unwrap();
        assert!(relay::sts::announced(&[self::text(text)]).is_some());
    }

    #[test]
    fn spf_record_allows_the_smarthosts() {
        let policy = |relay: &str| {
            let text =
                format!("hostname = 'mail.a.test'\ndomains = ['a.test']\n[relay]\n{relay}\n");
            let found = wanted(&Configuration::parse(&text).unwrap(), &[], &[]).unwrap();
            found
                .into_iter()
                .find(|wanted| {
                    wanted.owner.as_str() == "a.test" && wanted.to_string().contains("spf1")
                })
                .unwrap()
        };
        let others = "smarthost = 'smart.test:25'\n[[relay.domain]]\ndomains = ['b.test', 'c.test']\nsmarthost = '192.0.2.9:25'\n\
                      [[relay.domain]]\ndomains = ['d.test']\nsmarthost = '[2001:db8::9]:25'";
        let found = policy(others);
        assert_eq!(
            found.to_string(),
            "a.test. IN TXT \"v=spf1 mx a:smart.test ip4:192.0.2.9 ip6:2001:db8::9 -all\""
        );
        assert!(
            found.purpose.contains("If smart.test:25 sends mail from other addresses"),
            "{}",
            found.purpose
        );
        let found = policy("smarthost = '10.0.0.9:25'");
        assert_eq!(found.to_string(), "a.test. IN TXT \"v=spf1 mx -all\"");
        assert!(
            found.purpose.contains("If 10.0.0.9:25 sends mail from other addresses"),
            "{}",
            found.purpose
        );
    }

    #[test]
    fn texts_are_written_so_that_name_servers_read_them_back() {
        let mut long = vec![b'x'; 300];
        long.splice(..3, *b"\"\\\n");
        let written = Written(&Record::Text(long.into())).to_string();
        assert_eq!(
            written,
            format!("TXT \"\\\"\\\\\\010{}\" \"{}\"", "x".repeat(252), "x".repeat(45))
        );
        assert_eq!(Written(&text("")).to_string(), "TXT \"\"");
    }

    #[test]
    fn a_name_that_becomes_too_long_is_refused() {
        let domain = [&["a".repeat(61).as_str(); 4].join("."), "test"].join(".");
        let configuration =
            Configuration::parse(&format!("hostname = 'mail.a.test'\ndomains = ['{domain}']\n"))
                .unwrap();
        assert_eq!(wanted(&configuration, &[], &[]), Err(NotAName));
    }
}
