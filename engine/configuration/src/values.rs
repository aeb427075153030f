//! Values that are written as strings in the configuration. Each value is parsed once and is valid
//! from then on.

use alloc::string::String;
use core::borrow::Borrow;
use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;

use machine::Micros;

/// A value written as a string.
pub(super) trait Value: Sized {
    /// The form of a valid value, for error messages.
    const FORM: &'static str;

    /// Parses `text`. Errors: a description of the problem.
    fn parse(text: &str) -> Result<Self, &'static str>;
}

/// The name of a host or a domain: at least two labels of `a` to `z`, digits and hyphens (RFC 1123
/// §2.1), in lower case. An internationalized name is written with its A-labels (`xn--…`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostName(String);

impl HostName {
    /// The name, in lower case, without a trailing dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A map can find a name by its text.
impl Borrow<str> for HostName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Value for HostName {
    const FORM: &'static str =
        "a full name of letters, digits, hyphens and dots, such as \"mail.example.org\"";

    fn parse(text: &str) -> Result<HostName, &'static str> {
        check_host_name(text)?;
        Ok(HostName(text.to_ascii_lowercase()))
    }
}

const ANOTHER_SCRIPT: &str =
    "an international domain name must be in its DNS form, such as \"xn--bcher-kva.example\"";

fn check_host_name(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("the name is empty");
    }
    if text.len() > 253 {
        return Err("the name is longer than 253 characters");
    }
    if !text.contains('.') {
        return Err("the name contains no dot");
    }
    for label in text.split('.') {
        if label.is_empty() {
            return Err("the name contains an empty label: a dot too many");
        }
        if label.len() > 63 {
            return Err("the name has a label longer than 63 characters");
        }
        if !label.is_ascii() {
            return Err(ANOTHER_SCRIPT);
        }
        if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err("the name contains a character that is not allowed in host names");
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err("the name has a label that starts or ends with a hyphen");
        }
    }
    match text.rsplit('.').next() {
        Some(last) if last.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err("this is a number, not a name")
        }
        _ => Ok(()),
    }
}

/// The address of a mailbox, in lower case: a dot-string (RFC 5321 §4.1.2; other scripts as in RFC
/// 6531 §3.3) at a domain. Accounts have no quoted local parts, since no client handles them
/// reliably.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MailAddress {
    text: String,
    local_bytes: usize,
}

impl MailAddress {
    /// The whole address.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the `@`.
    pub fn local_part(&self) -> &str {
        self.text.get(..self.local_bytes).unwrap_or_default()
    }

    /// The part after the `@`.
    pub fn domain(&self) -> &str {
        self.text.get(self.local_bytes.saturating_add(1)..).unwrap_or_default()
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Value for MailAddress {
    const FORM: &'static str = "an address, such as \"ada@example.org\"";

    fn parse(text: &str) -> Result<MailAddress, &'static str> {
        let (local, domain) = text.rsplit_once('@').ok_or("the address contains no @")?;
        check_local_part(local)?;
        check_host_name(domain).map_err(|_| match domain.is_ascii() {
            true => "the part after the @ is not a domain",
            false => ANOTHER_SCRIPT,
        })?;
        let mut lower = local.to_lowercase();
        let local_bytes = lower.len();
        lower.push('@');
        lower.push_str(&domain.to_ascii_lowercase());
        Ok(MailAddress { text: lower, local_bytes })
    }
}

fn check_local_part(local: &str) -> Result<(), &'static str> {
    const SPECIAL: &str = "!#$%&'*+-/=?^_`{|}~";
    if local.is_empty() {
        return Err("the part before the @ is empty");
    }
    if local.len() > 64 {
        return Err("the part before the @ is longer than 64 bytes");
    }
    if local.split('.').any(str::is_empty) {
        return Err("the part before the @ has a dot too many");
    }
    let is_atom = |c: char| {
        c == '.'
            || c.is_ascii_alphanumeric()
            || SPECIAL.contains(c)
            || (!c.is_ascii() && c.is_alphanumeric())
    };
    if !local.chars().all(is_atom) {
        return Err("the part before the @ contains a character that is not allowed");
    }
    Ok(())
}

/// A duration of at most a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span(pub(super) Micros);

impl Value for Span {
    const FORM: &'static str = "a time, such as \"500ms\", \"2s\", \"5m\" or \"1h\"";

    fn parse(text: &str) -> Result<Span, &'static str> {
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
        let unit =
            units.into_iter().find_map(|(suffix, ms)| Some((text.strip_suffix(suffix)?, ms)));
        let (number, unit_ms) = unit.ok_or("the unit must be ms, s, m or h")?;
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number
            .parse::<u64>()
            .ok()
            .filter(|_| is_number)
            .ok_or("the number before the unit is missing")?;
        match number.checked_mul(unit_ms) {
            Some(ms @ 0..=86_400_000) => Ok(Span(Micros::from_millis(ms))),
            _ => Err("the time is longer than a day"),
        }
    }
}

/// A block of addresses in CIDR notation (RFC 4632 §3.1), IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The first address of the block; the bits after the prefix are zero.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The number of leading bits that all addresses of the block share: 0 to 32, or 0 to 128 for
    /// IPv6.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// All addresses of the block, from the first to the last.
    pub fn addresses(&self) -> RangeInclusive<IpAddr> {
        let last = match self.address {
            IpAddr::V4(first) => {
                let host_bits = u32::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
                IpAddr::V4((first.to_bits() | host_bits).into())
            }
            IpAddr::V6(first) => {
                let host_bits = u128::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
                IpAddr::V6((first.to_bits() | host_bits).into())
            }
        };
        self.address..=last
    }

    /// Whether `address` is in the block. An address of the other family never is.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && network_of(address, self.length) == self.address
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

impl Value for Prefix {
    const FORM: &'static str =
        "a prefix, such as \"10.0.2.0/24\", or \"10.0.2.2/32\" for one address";

    fn parse(text: &str) -> Result<Prefix, &'static str> {
        let (address, length) = split_prefix(text)?;
        if network_of(address, length) != address {
            return Err("the address has bits set after the prefix");
        }
        Ok(Prefix { address, length })
    }
}

/// An IPv4 or IPv6 address of this machine, with the length of its network's prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// The number of leading bits that all addresses of its network share: 1 to 32, or 1 to 128 for
    /// IPv6.
    pub length: u8,
}

impl Value for InterfaceAddress {
    const FORM: &'static str =
        "the machine's address with its prefix, such as \"10.0.0.2/24\" or \"2001:db8::2/64\"";

    fn parse(text: &str) -> Result<InterfaceAddress, &'static str> {
        let (address, length) = split_prefix(text)?;
        if !is_host(address) || length == 0 {
            return Err("this is not the address of a host");
        }
        match address {
            IpAddr::V4(address) => {
                let host_mask = u32::MAX.checked_shr(u32::from(length)).unwrap_or(0);
                let host = address.to_bits() & host_mask;
                if length < 31 && (host == 0 || host == host_mask) {
                    return Err(
                        "this is the address of the network or its broadcast address, not of a host",
                    );
                }
            }
            IpAddr::V6(address) => {
                if address.is_unicast_link_local() {
                    return Err("link-local addresses are assigned automatically");
                }
                if length < 127
                    && address.to_bits() & u128::MAX.checked_shr(u32::from(length)).unwrap_or(0)
                        == 0
                {
                    return Err("this is the address of the network's routers, not of a host");
                }
            }
        }
        Ok(InterfaceAddress { address, length })
    }
}

impl InterfaceAddress {
    /// Whether `other` is in the network of this address.
    pub(super) fn reaches(&self, other: IpAddr) -> bool {
        other.is_ipv4() == self.address.is_ipv4()
            && network_of(other, self.length) == network_of(self.address, self.length)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

impl Value for IpAddr {
    const FORM: &'static str = "the address of a host, such as \"10.0.0.1\" or \"2001:db8::1\"";

    fn parse(text: &str) -> Result<IpAddr, &'static str> {
        let address: IpAddr = text.parse().map_err(|_| "this is not an address")?;
        if is_host(address) { Ok(address) } else { Err("this is not the address of a host") }
    }
}

fn is_host(address: IpAddr) -> bool {
    let is_unicast = !(address.is_unspecified() || address.is_multicast() || address.is_loopback());
    match address {
        IpAddr::V4(address) => is_unicast && !address.is_broadcast(),
        IpAddr::V6(address) => is_unicast && address.to_ipv4_mapped().is_none(),
    }
}

fn split_prefix(text: &str) -> Result<(IpAddr, u8), &'static str> {
    let (address, length) = text.split_once('/').ok_or("the length of the prefix is missing")?;
    let address: IpAddr = address.parse().map_err(|_| "the part before the / is not an address")?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    match length.parse() {
        Ok(length) if is_number && length <= bits => Ok((address, length)),
        _ if bits == 32 => Err("the length of the prefix is not a number from 0 to 32"),
        _ => Err("the length of the prefix is not a number from 0 to 128"),
    }
}

fn network_of(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let mask = !u32::MAX.checked_shr(length).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = !u128::MAX.checked_shr(length).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}
