//! How often TLS was had with the hosts that take a domain's mail, and why it was not: by domain and day, today and yesterday.
//!
//! It is what reports to such a domain would say (SMTP TLS Reporting). None are sent: whoever runs the machine looks at it.
//!
//! Invariant: of a day at most [`DOMAINS_MAX`] domains are known; who comes later counts among the [`OTHERS`].
//!
//! Answers to: RFC 8460 sections 4.2 and 4.3.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// The domains of a day that are counted each for itself.
pub const DOMAINS_MAX: usize = 256;

/// All further ones of a day: no domain is called so.
pub const OTHERS: &str = "";

/// By what of its domain's a host was judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// What is published of its certificates (DANE).
    Tlsa,
    /// A policy that is to be enforced, or that could not be had (MTA-STS).
    Sts,
    /// Nothing.
    None,
}

impl Rule {
    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Tlsa => "tlsa",
            Rule::Sts => "sts",
            Rule::None => "no-policy-found",
        }
    }
}

/// Why TLS was not had, or not as it should be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Shortfall {
    /// The host does not offer it, or refuses it.
    NoStartTls,
    /// Its certificate is for other names.
    OtherName,
    /// It is not valid today.
    Expired,
    /// It is not the one that is published, or nobody who is believed vouches for it.
    NotTrusted,
    /// Anything else: a handshake came to nothing, or the policy allows none of the hosts.
    Failed,
    /// What is published of certificates is of no use.
    TlsaInvalid,
    /// Nobody says what is published.
    DnssecInvalid,
    /// The policy could not be had.
    PolicyNotFetched,
    /// What the web server has is no policy.
    PolicyInvalid,
    /// Nobody who is believed vouches for the web server under its name.
    PolicyUnvouched,
}

impl Shortfall {
    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Shortfall::NoStartTls => "starttls-not-supported",
            Shortfall::OtherName => "certificate-host-mismatch",
            Shortfall::Expired => "certificate-expired",
            Shortfall::NotTrusted => "certificate-not-trusted",
            Shortfall::Failed => "validation-failure",
            Shortfall::TlsaInvalid => "tlsa-invalid",
            Shortfall::DnssecInvalid => "dnssec-invalid",
            Shortfall::PolicyNotFetched => "sts-policy-fetch-error",
            Shortfall::PolicyInvalid => "sts-policy-invalid",
            Shortfall::PolicyUnvouched => "sts-webpki-invalid",
        }
    }
}

/// So often the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted<'a> {
    /// The day, by its number since 1970.
    pub day: u64,
    /// The domain, or [`OTHERS`].
    pub domain: &'a str,
    /// By what its hosts were judged.
    pub rule: Rule,
    /// What came of it.
    pub came: Result<(), Shortfall>,
    /// How often.
    pub count: u32,
}

/// What was counted of one domain on one day.
type Counts = BTreeMap<(Rule, Result<(), Shortfall>), u32>;

/// What was counted.
#[derive(Debug, Default)]
pub struct Tally {
    days: BTreeMap<u64, BTreeMap<Box<str>, Counts>>,
}

impl Tally {
    /// This came of TLS with a host of this domain's, on this day. What was before yesterday is forgotten, and what is later than today: the clock was wrong then.
    pub fn count(&mut self, domain: &str, rule: Rule, came: Result<(), Shortfall>, today: u64) {
        self.days.retain(|day, _| is_recent(*day, today));
        let domains = self.days.entry(today).or_default();
        let is_room = domains.keys().filter(|known| &***known != OTHERS).count() < DOMAINS_MAX;
        let domain = if is_room || domains.contains_key(domain) { domain } else { OTHERS };
        let count = domains.entry(domain.into()).or_default().entry((rule, came)).or_default();
        *count = count.saturating_add(1);
    }

    /// What there is of today and yesterday, by day and domain.
    pub fn counted(&self, today: u64) -> impl Iterator<Item = Counted<'_>> {
        let days = self.days.iter().filter(move |(day, _)| is_recent(**day, today));
        let domains = days.flat_map(|(day, domains)| {
            domains.iter().map(|(domain, counts)| (*day, domain, counts))
        });
        domains.flat_map(|(day, domain, counts)| {
            counts.iter().map(move |((rule, came), count)| Counted {
                day,
                domain,
                rule: *rule,
                came: *came,
                count: *count,
            })
        })
    }
}

/// Whether it is today or yesterday.
fn is_recent(day: u64, today: u64) -> bool {
    today.checked_sub(day).is_some_and(|ago| ago <= 1)
}
