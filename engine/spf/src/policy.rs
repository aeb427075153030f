//! Policies of domains (RFC 7208 §4.5, §4.6, §5, §6, §12). A policy is parsed as a whole before it
//! is evaluated, so that an error at its end makes the policy invalid for every sender.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use crate::specification::Specification;

/// The beginning of every policy.
const VERSION: &[u8] = b"v=spf1";

/// The most bytes of a policy. Policies should fit into 512 bytes of DNS (RFC 7208 §3.4). The
/// policy is evaluated again after each answer of a name server, so the work for it must be small.
pub(crate) const POLICY_BYTES_MAX: usize = 8 << 10;

/// A policy.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct SpfPolicy {
    /// The directives, in the order in which they are tried.
    pub(crate) directives: Vec<Directive>,
    /// The domain with the policy that applies if no mechanism matches.
    pub(crate) redirect: Option<Specification>,
}

/// A mechanism, and the result if it matches.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Directive {
    pub(crate) qualifier: Qualifier,
    pub(crate) mechanism: SpfMechanism,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Qualifier {
    /// `+`, or no qualifier.
    Pass,
    /// `-`.
    Fail,
    /// `~`.
    SoftFail,
    /// `?`.
    Neutral,
}

/// The mechanisms that match sending hosts. A specification of `None` means the domain itself.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum SpfMechanism {
    All,
    Include(Specification),
    Address(Option<Specification>, Prefixes),
    Exchanger(Option<Specification>, Prefixes),
    Pointer(Option<Specification>),
    Ipv4(Ipv4Addr, u8),
    Ipv6(Ipv6Addr, u8),
    Exists(Specification),
}

/// The number of address bits that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefixes {
    pub(crate) ipv4: u8,
    pub(crate) ipv6: u8,
}

/// The policy has invalid syntax.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SpfSyntaxError;

/// Whether a text is a policy of this version.
pub(crate) fn is_policy(text: &[u8]) -> bool {
    let rest = text
        .split_at_checked(VERSION.len())
        .filter(|(version, _)| version.eq_ignore_ascii_case(VERSION));
    rest.is_some_and(|(_, rest)| matches!(rest.first(), None | Some(b' ')))
}

impl SpfPolicy {
    /// Reads a text for which [`is_policy`] holds.
    ///
    /// Errors: the text is not a policy, or has more than [`POLICY_BYTES_MAX`] bytes.
    pub(crate) fn read(text: &[u8]) -> Result<SpfPolicy, SpfSyntaxError> {
        if text.len() > POLICY_BYTES_MAX {
            return Err(SpfSyntaxError);
        }
        let mut policy = SpfPolicy::default();
        let mut explains = false;
        for term in text.split(|byte| *byte == b' ').skip(1).filter(|term| !term.is_empty()) {
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            let name = term.iter().take_while(|byte| is_name(byte)).count();
            match term.split_at_checked(name) {
                Some((name, [b'=', value @ ..]))
                    if name.first().is_some_and(u8::is_ascii_alphabetic) =>
                {
                    let redirects = name.eq_ignore_ascii_case(b"redirect");
                    if redirects || name.eq_ignore_ascii_case(b"exp") {
                        let value = Specification::of_domain(value).ok_or(SpfSyntaxError)?;
                        let is_second =
                            if redirects { policy.redirect.is_some() } else { explains };
                        if is_second {
                            return Err(SpfSyntaxError);
                        }
                        explains |= !redirects;
                        policy.redirect = if redirects { Some(value) } else { policy.redirect };
                    } else {
                        Specification::of_text(value).ok_or(SpfSyntaxError)?;
                    }
                }
                _ => policy.directives.push(Directive::read(term)?),
            }
        }
        Ok(policy)
    }
}

impl Directive {
    fn read(term: &[u8]) -> Result<Directive, SpfSyntaxError> {
        let (qualifier, term) = match term.split_first() {
            Some((b'+', rest)) => (Qualifier::Pass, rest),
            Some((b'-', rest)) => (Qualifier::Fail, rest),
            Some((b'~', rest)) => (Qualifier::SoftFail, rest),
            Some((b'?', rest)) => (Qualifier::Neutral, rest),
            _ => (Qualifier::Pass, term),
        };
        Ok(Directive { qualifier, mechanism: SpfMechanism::read(term)? })
    }
}

impl SpfMechanism {
    fn read(term: &[u8]) -> Result<SpfMechanism, SpfSyntaxError> {
        let end = term.iter().position(|byte| b":/".contains(byte)).unwrap_or(term.len());
        let (name, rest) = term.split_at_checked(end).ok_or(SpfSyntaxError)?;
        let value = rest.strip_prefix(b":");
        let is = |wanted: &[u8]| name.eq_ignore_ascii_case(wanted);
        let domain = |text| Specification::of_domain(text).ok_or(SpfSyntaxError);
        match value {
            None if is(b"all") && rest.is_empty() => Ok(SpfMechanism::All),
            Some(value) if is(b"include") => Ok(SpfMechanism::Include(domain(value)?)),
            Some(value) if is(b"exists") => Ok(SpfMechanism::Exists(domain(value)?)),
            None if is(b"ptr") && rest.is_empty() => Ok(SpfMechanism::Pointer(None)),
            Some(value) if is(b"ptr") => Ok(SpfMechanism::Pointer(Some(domain(value)?))),
            Some(value) if is(b"ip4") => {
                address(value, 32).map(|(address, bits)| SpfMechanism::Ipv4(address, bits))
            }
            Some(value) if is(b"ip6") => {
                address(value, 128).map(|(address, bits)| SpfMechanism::Ipv6(address, bits))
            }
            _ if is(b"a") => with_prefixes(rest)
                .map(|(domain, prefixes)| SpfMechanism::Address(domain, prefixes)),
            _ if is(b"mx") => with_prefixes(rest)
                .map(|(domain, prefixes)| SpfMechanism::Exchanger(domain, prefixes)),
            _ => Err(SpfSyntaxError),
        }
    }
}

/// Reads an address, and the number of its bits that are compared.
fn address<A: FromStr>(text: &[u8], bits_max: u8) -> Result<(A, u8), SpfSyntaxError> {
    let text = str::from_utf8(text).map_err(|_| SpfSyntaxError)?;
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, number(bits.as_bytes(), bits_max)?),
        None => (text, bits_max),
    };
    Ok((address.parse().map_err(|_| SpfSyntaxError)?, bits))
}

/// Reads the text after `a` or `mx`: a domain and prefix lengths, both optional.
fn with_prefixes(text: &[u8]) -> Result<(Option<Specification>, Prefixes), SpfSyntaxError> {
    let (text, ipv6) = without_prefix(text, b"//", 128)?;
    let (text, ipv4) = without_prefix(text, b"/", 32)?;
    let domain = match text {
        [] => None,
        [b':', domain @ ..] => Some(Specification::of_domain(domain).ok_or(SpfSyntaxError)?),
        _ => return Err(SpfSyntaxError),
    };
    Ok((domain, Prefixes { ipv4, ipv6 }))
}

/// Splits off the prefix length after `slashes` at the end of `text`. Without one, it is
/// `bits_max`.
fn without_prefix<'a>(
    text: &'a [u8],
    slashes: &[u8],
    bits_max: u8,
) -> Result<(&'a [u8], u8), SpfSyntaxError> {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match text.split_at_checked(text.len().saturating_sub(digits)) {
        Some((rest, length)) if digits > 0 && rest.ends_with(slashes) => {
            let rest = rest.get(..rest.len().saturating_sub(slashes.len())).unwrap_or_default();
            Ok((rest, number(length, bits_max)?))
        }
        _ => Ok((text, bits_max)),
    }
}

/// Reads a number up to `max`, without leading zeros.
fn number(digits: &[u8], max: u8) -> Result<u8, SpfSyntaxError> {
    let is_plain =
        matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(digits).ok().filter(|_| is_plain).ok_or(SpfSyntaxError)?;
    text.parse().ok().filter(|number| *number <= max).ok_or(SpfSyntaxError)
}
