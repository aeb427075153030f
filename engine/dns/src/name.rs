//! Domain names, as text.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::net::IpAddr;
use core::str::FromStr;

use domain::base::ToName;
use domain::base::name::NameBuilder;

/// A domain name (RFC 1035 §2.3) as text in lower case without the last dot, so that equal names
/// are equal texts. The root is empty. Special characters are escaped (RFC 1035 §5.1).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

/// A name in the form of the crate `domain`.
pub(crate) type Labels = domain::base::Name<Vec<u8>>;

/// The text is not a domain name. Either a label is empty or has more than 63 bytes, the name has
/// more than 255 bytes in the wire format, or an escape is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAName;

impl Name {
    /// Parses a name, with or without the last dot.
    ///
    /// Errors: [`NotAName`].
    pub fn parse(text: &str) -> Result<Name, NotAName> {
        if text.is_empty() {
            return Ok(Name(Box::default()));
        }
        Labels::from_str(text).map(|labels| Name::of(&labels)).map_err(|_| NotAName)
    }

    /// The name with these bytes. Dots separate the labels. All other bytes belong to labels.
    ///
    /// Errors: [`NotAName`].
    pub fn of_bytes(text: &[u8]) -> Result<Name, NotAName> {
        let text = text.strip_suffix(b".").unwrap_or(text);
        let mut builder = NameBuilder::new_vec();
        for label in text.split(|byte| *byte == b'.') {
            if label.is_empty() {
                return Err(NotAName);
            }
            builder.append_label(label).map_err(|_| NotAName)?;
        }
        builder.into_name().map(|labels| Name::of(&labels)).map_err(|_| NotAName)
    }

    /// The name for reverse lookups of an address (RFC 1035 §3.5, RFC 3596 §2.5).
    pub fn reverse(address: IpAddr) -> Name {
        let above = if address.is_ipv4() { "in-addr.arpa" } else { "ip6.arpa" };
        Name((backwards(address) + above).into())
    }

    /// The name of an address in a DNS list (RFC 5782 §2.1 and §2.4).
    ///
    /// Errors: [`NotAName`] if the name is too long.
    pub fn in_list(list: &Name, address: IpAddr) -> Result<Name, NotAName> {
        Name::parse(&(backwards(address) + list.as_str()))
    }

    /// Whether the name is `other`, or a subdomain of `other`.
    pub fn is_within(&self, other: &Name) -> bool {
        let above = self.0.strip_suffix(other.as_str());
        other.is_root()
            || above.is_some_and(|above| {
                above.is_empty() || above.ends_with('.') && !above.ends_with("\\.")
            })
    }

    /// The parent of the name: the name without its first label. `None`: the name is the root.
    pub fn parent(&self) -> Option<Name> {
        if self.is_root() {
            return None;
        }
        let mut bytes = self.0.bytes().enumerate();
        while let Some((place, byte)) = bytes.next() {
            match byte {
                b'.' => return self.0.get(place + 1..).map(|above| Name(above.into())),
                // An escaped dot does not separate labels.
                b'\\' => drop(bytes.next()),
                _ => {}
            }
        }
        Some(Name(Box::default()))
    }

    pub(crate) fn of(name: &impl ToName) -> Name {
        let mut text = alloc::format!("{}", name.fmt_with_dot());
        text.pop();
        text.make_ascii_lowercase();
        Name(text.into())
    }

    /// The name in the form of the crate `domain`. `None`: the text is not a valid name, which
    /// never happens after [`Name::parse`].
    pub(crate) fn labels(&self) -> Option<Labels> {
        if self.is_root() { Some(Labels::root_vec()) } else { Labels::from_str(&self.0).ok() }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is the root. As an MX host, the root means that the domain accepts no mail
    /// (RFC 7505 §3).
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the name is a valid host name: labels of alphanumeric characters and hyphens, with
    /// no hyphen at their ends (RFC 1123 §2.1).
    pub fn is_host_name(&self) -> bool {
        let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        self.0.as_bytes().split(|byte| *byte == b'.').all(|label| {
            is_edge(label.first())
                && is_edge(label.last())
                && label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        })
    }
}

/// The labels of an address in reverse order, with a dot after each.
fn backwards(address: IpAddr) -> String {
    let mut text = String::new();
    // Writing to a string never fails.
    let _ = match address {
        IpAddr::V4(address) => {
            address.octets().iter().rev().try_for_each(|byte| write!(text, "{byte}."))
        }
        IpAddr::V6(address) => {
            let mut bytes = address.octets().into_iter().rev();
            bytes.try_for_each(|byte| write!(text, "{:x}.{:x}.", byte & 0xf, byte >> 4))
        }
    };
    text
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
