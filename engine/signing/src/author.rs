//! In whose name a message is written: the addresses in its `From` field, and their domain.
//!
//! Only what every reader of mail reads alike counts. A message of which that cannot be said is
//! nobody's: from another server it goes to Junk, from one of our accounts it is refused.

use alloc::string::String;
use alloc::vec::Vec;

use dns::Name;
use message::header::Header;

/// The domain whose message it says that it is.
pub enum Author {
    /// Nothing, yet.
    Unknown,
    /// This one.
    Of(Name),
    /// That cannot be told, for this reason.
    Untold(&'static str),
}

const CUT: &str = "the header is too long to tell whose it is";
const MISSING: &str = "it does not say whose it is";
const REPEATED: &str = "it says more than once whose it is";
const UNREADABLE: &str = "it cannot be read for certain whose it is";
const SEVERAL: &str = "it names people of several domains as its authors";

impl Author {
    /// As a header says, of which there is more if it `is_cut`.
    pub fn of(header: &[u8], is_cut: bool) -> Author {
        domain_of_authors(header, is_cut).map_or_else(Author::Untold, Author::Of)
    }
}

fn domain_of_authors(header: &[u8], is_cut: bool) -> Result<Name, &'static str> {
    let addresses = addresses_of(header, is_cut)?;
    let domains: Option<Vec<Name>> = addresses.iter().map(|address| domain_of(address)).collect();
    let mut domains = domains.ok_or(UNREADABLE)?;
    domains.dedup();
    let domain = domains.pop().ok_or(UNREADABLE)?;
    if domains.is_empty() { Ok(domain) } else { Err(SEVERAL) }
}

/// The addresses of the one `From` field: at least one.
fn addresses_of(header: &[u8], is_cut: bool) -> Result<Vec<String>, &'static str> {
    if is_cut {
        return Err(CUT);
    }
    match lines_of_from(header) {
        0 => return Err(MISSING),
        1 => {}
        _ => return Err(REPEATED),
    }
    let field = Header::new(header).field("From").ok_or(UNREADABLE)?;
    field.unambiguous_addresses().filter(|addresses| !addresses.is_empty()).ok_or(UNREADABLE)
}

/// How many lines look like a `From` field. A line that is no field ends a header for some readers,
/// and not for others.
fn lines_of_from(header: &[u8]) -> usize {
    let is_from = |line: &&[u8]| {
        let colon = line.iter().position(|byte| *byte == b':');
        let name = colon.and_then(|colon| line.get(..colon)).unwrap_or_default();
        name.trim_ascii_end().eq_ignore_ascii_case(b"From")
    };
    header.split(|byte| *byte == b'\n').filter(is_from).count()
}

/// An address of a host is no domain: nobody speaks for it. Nor is a name outside of ASCII: where
/// its domain is in the name system is not known here.
fn domain_of(address: &str) -> Option<Name> {
    let (_, domain) = address.rsplit_once('@')?;
    let is_usable = !domain.starts_with('[') && domain.is_ascii();
    Name::of_bytes(domain.as_bytes()).ok().filter(|_| is_usable)
}

/// The addresses in whose name a message is submitted.
pub struct Authors {
    /// Those in the `From` field.
    pub from: Vec<String>,
    /// Those of the account that sends it on unchanged, if it says so (`Resent-From`, RFC 5322
    /// section 3.6.6).
    pub resent_from: Option<Vec<String>>,
}

impl Authors {
    /// As a header says, of which there is more if it `is_cut`. `None`: that cannot be told.
    pub fn of(header: &[u8], is_cut: bool) -> Option<Authors> {
        let from = addresses_of(header, is_cut).ok()?;
        // The topmost was added last.
        let resent_from = Header::new(header)
            .field("Resent-From")
            .and_then(|field| field.unambiguous_addresses());
        Some(Authors { from, resent_from: resent_from.filter(|addresses| !addresses.is_empty()) })
    }
}
