//! TLS statistics: how often TLS succeeded with the hosts that accept a domain's mail, and why it
//! failed otherwise. The numbers are kept by domain and day, for today and yesterday.
//!
//! A TLS-RPT report to the domain (SMTP TLS Reporting) would have the same numbers. This server
//! sends no such reports. The operator reads the numbers.
//!
//! Invariant: at most [`DOMAINS_MAX`] domains of a day are counted separately. Further domains
//! count as [`OTHERS`].
//!
//! Implements: RFC 8460 sections 4.2 and 4.3.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// The number of domains of a day that are counted separately.
pub const DOMAINS_MAX: usize = 256;

/// The name that stands for all further domains of a day. No domain has this name.
pub const OTHERS: &str = "";

/// The kind of domain policy that applied to a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// The published certificates (DANE).
    Tlsa,
    /// A policy that must be enforced, or that could not be fetched (MTA-STS).
    Sts,
    /// No policy.
    None,
}

impl Rule {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Tlsa => "tlsa",
            Rule::Sts => "sts",
            Rule::None => "no-policy-found",
        }
    }
}

/// Why TLS failed, or was not as the policy demands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Shortfall {
    /// The host does not offer TLS, or refuses it.
    NoStartTls,
    /// The certificate is for other names.
    OtherName,
    /// The certificate is not valid today.
    Expired,
    /// The certificate is not a published one, or no trusted authority has signed it.
    NotTrusted,
    /// Anything else: the handshake failed, or the policy allows none of the hosts.
    Failed,
    /// The published certificates are unusable.
    TlsaInvalid,
    /// The published certificates could not be looked up.
    DnssecInvalid,
    /// The policy could not be fetched.
    PolicyNotFetched,
    /// The web server's text is not a valid policy.
    PolicyInvalid,
    /// The web server has no certificate of a trusted authority that is valid for its name.
    PolicyUnvouched,
}

impl Shortfall {
    /// The name in reports.
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

/// One row of the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted<'a> {
    /// The number of the day since 1970-01-01.
    pub day: u64,
    /// The domain, or [`OTHERS`].
    pub domain: &'a str,
    /// The policy that applied to its hosts.
    pub rule: Rule,
    /// The result.
    pub result: Result<(), Shortfall>,
    /// The number of connections.
    pub count: u32,
}

/// The counts of one domain on one day.
type Counts = BTreeMap<(Rule, Result<(), Shortfall>), u32>;

/// The statistics.
#[derive(Debug, Default)]
pub struct Tally {
    days: BTreeMap<u64, BTreeMap<Box<str>, Counts>>,
}

impl Tally {
    /// Counts a TLS result with a host of this domain on this day. Days before yesterday are
    /// forgotten. Days after today come from a wrong clock, and are forgotten too.
    pub fn count(&mut self, domain: &str, rule: Rule, result: Result<(), Shortfall>, today: u64) {
        self.days.retain(|day, _| is_recent(*day, today));
        let domains = self.days.entry(today).or_default();
        let is_room = domains.keys().filter(|known| &***known != OTHERS).count() < DOMAINS_MAX;
        let domain = if is_room || domains.contains_key(domain) { domain } else { OTHERS };
        let count = domains.entry(domain.into()).or_default().entry((rule, result)).or_default();
        *count = count.saturating_add(1);
    }

    /// The rows of today and yesterday, by day and domain.
    pub fn counted(&self, today: u64) -> impl Iterator<Item = Counted<'_>> {
        let days = self.days.iter().filter(move |(day, _)| is_recent(**day, today));
        let domains = days.flat_map(|(day, domains)| {
            domains.iter().map(|(domain, counts)| (*day, domain, counts))
        });
        domains.flat_map(|(day, domain, counts)| {
            counts.iter().map(move |((rule, result), count)| Counted {
                day,
                domain,
                rule: *rule,
                result: *result,
                count: *count,
            })
        })
    }
}

/// Whether a day is today or yesterday.
fn is_recent(day: u64, today: u64) -> bool {
    today.checked_sub(day).is_some_and(|ago| ago <= 1)
}
