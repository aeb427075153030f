//! DMARC records of domains (RFC 9989, policy record format). Unknown tags are ignored.

/// The policy for a message if nothing proves that it comes from its author's domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DmarcPolicy {
    /// The domain asks for no special treatment.
    None,
    /// The domain asks to treat the message as suspicious.
    Quarantine,
    /// The domain asks to reject the message.
    Reject,
}

/// A record.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct DmarcRecord {
    /// The policy for the domain itself.
    pub(crate) own: DmarcPolicy,
    /// The policy for the subdomains, if different.
    pub(crate) below: Option<DmarcPolicy>,
    /// The policy for subdomains that do not exist, if different.
    pub(crate) below_nothing: Option<DmarcPolicy>,
    pub(crate) role: DomainRole,
    /// Whether only signatures of exactly the author's domain are aligned.
    pub(crate) is_strict_for_signatures: bool,
    /// Whether only senders of exactly the author's domain are aligned.
    pub(crate) is_strict_for_senders: bool,
    /// Whether the domain is testing its policy.
    pub(crate) is_test: bool,
}

/// The role of a domain in the tree of domains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DomainRole {
    /// The record does not state a role.
    Unstated,
    /// The subdomains belong to other organizations (`psd=y`).
    Public,
    /// The subdomains belong to the same organization, and the parent domains do not (`psd=n`).
    Organization,
}

/// A tag with a policy.
enum PolicyTag {
    Unstated,
    Given(DmarcPolicy),
    Invalid,
}

/// The most bytes of a record. Records are read again for each signature of a message, so they must
/// be small.
pub(crate) const RECORD_BYTES_MAX: usize = 8 << 10;

/// Whether a text is a record of this version, and not too long.
pub(crate) fn is_record(text: &[u8]) -> bool {
    text.len() <= RECORD_BYTES_MAX && tags(text).next() == Some((&b"v"[..], &b"DMARC1"[..]))
}

impl DmarcRecord {
    /// Reads a text for which [`is_record`] holds. `None`: a policy is invalid, and the record
    /// names no address for reports.
    pub(crate) fn read(text: &[u8]) -> Option<DmarcRecord> {
        let get = |wanted: &[u8]| {
            tags(text).find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
        };
        let is = |name: &[u8], wanted: &[u8]| {
            get(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        let role = match () {
            () if is(b"psd", b"y") => DomainRole::Public,
            () if is(b"psd", b"n") => DomainRole::Organization,
            () => DomainRole::Unstated,
        };
        let policy_tags = [b"p".as_slice(), b"sp", b"np"].map(|name| policy_tag(get(name)));
        let is_nonsense = policy_tags.iter().any(|tag| matches!(tag, PolicyTag::Invalid));
        if is_nonsense && !get(b"rua").is_some_and(names_an_address) {
            return None;
        }
        let [own, below, below_nothing] = policy_tags.map(|tag| match tag {
            PolicyTag::Given(handling) if !is_nonsense => Some(handling),
            _ => None,
        });
        Some(DmarcRecord {
            own: own.unwrap_or(DmarcPolicy::None),
            below,
            below_nothing,
            role,
            is_strict_for_signatures: is(b"adkim", b"s"),
            is_strict_for_senders: is(b"aspf", b"s"),
            is_test: is(b"t", b"y"),
        })
    }
}

/// The names and values of the tags, without surrounding white space.
fn tags(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|byte| *byte == b';').filter_map(|tag| {
        let equals = tag.iter().position(|byte| *byte == b'=')?;
        Some((tag.get(..equals)?.trim_ascii(), tag.get(equals + 1..)?.trim_ascii()))
    })
}

/// Reads the value of a tag with a policy. `None`: the record lacks the tag.
fn policy_tag(value: Option<&[u8]>) -> PolicyTag {
    let Some(value) = value else { return PolicyTag::Unstated };
    let handlings = [
        (&b"none"[..], DmarcPolicy::None),
        (b"quarantine", DmarcPolicy::Quarantine),
        (b"reject", DmarcPolicy::Reject),
    ];
    let handling = handlings.into_iter().find(|(name, _)| value.eq_ignore_ascii_case(name));
    handling.map_or(PolicyTag::Invalid, |(_, handling)| PolicyTag::Given(handling))
}

/// Whether a list of URIs has a mail address.
fn names_an_address(value: &[u8]) -> bool {
    let is_address = |address: &[u8]| {
        let scheme = address
            .split_at_checked(7)
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"mailto:"));
        scheme.is_some_and(|(_, address)| address.iter().skip(1).any(|byte| *byte == b'@'))
    };
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).any(is_address)
}
