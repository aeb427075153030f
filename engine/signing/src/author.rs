//! The authors of a message: the addresses in its `From` field, and their domain.
//!
//! A `From` field counts only if all mail clients read it in the same way. A message without such a
//! field has no known author. If the message is from another server, it goes to Junk. If it is from
//! one of our accounts, it is refused.

use alloc::string::String;
use alloc::vec::Vec;

use dns::Name;
use message::header::{Header, split_name, without_mark};

/// The domain of a message's author.
pub enum Author {
    /// The author is not known yet.
    Unknown,
    /// The author is at this domain.
    Of(Name),
    /// The domain cannot be determined, for this reason.
    Undetermined(&'static str),
}

const CUT: &str = "the header is too long to find the author";
const MISSING: &str = "the message has no From field";
const REPEATED: &str = "the message has more than one From field";
const UNREADABLE: &str = "the From field cannot be read reliably";
const SEVERAL: &str = "the From field has authors of several domains";

impl Author {
    /// Finds the author in a header. `is_cut`: only the beginning of the header is given.
    pub fn of(header: &[u8], is_cut: bool) -> Author {
        domain_of_authors(header, is_cut).map_or_else(Author::Undetermined, Author::Of)
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

/// The addresses of the only `From` field. There is at least one.
fn addresses_of(header: &[u8], is_cut: bool) -> Result<Vec<String>, &'static str> {
    if is_cut {
        return Err(CUT);
    }
    let mut lines = lines_of_from(header);
    match (lines.next(), lines.next()) {
        (None, _) => return Err(MISSING),
        (Some(line), None) if is_marked(line) => return Err(UNREADABLE),
        (Some(_), None) => {}
        (Some(_), Some(_)) => return Err(REPEATED),
    }
    let field = Header::new(header).field("From").ok_or(UNREADABLE)?;
    field.unambiguous_addresses().filter(|addresses| !addresses.is_empty()).ok_or(UNREADABLE)
}

/// The lines that look like a `From` field, found as the pages of the webmail find them. All
/// lines of the header count: some readers end a header at a line that is not a field, and
/// others continue.
fn lines_of_from(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_from =
        |line: &&[u8]| split_name(line).is_some_and(|(name, _)| name.eq_ignore_ascii_case(b"From"));
    header.split(|byte| *byte == b'\n').filter(is_from)
}

/// Whether a byte order mark is before the line. Some readers ignore the mark, and others the line.
fn is_marked(line: &[u8]) -> bool {
    without_mark(line).len() < line.len()
}

/// The domain of an address. `None` for an address literal, which belongs to no domain, and for a
/// non-ASCII name, which is not converted here.
fn domain_of(address: &str) -> Option<Name> {
    let (_, domain) = address.rsplit_once('@')?;
    let is_usable = !domain.starts_with('[') && domain.is_ascii();
    Name::of_bytes(domain.as_bytes()).ok().filter(|_| is_usable)
}

/// The authors of a submitted message.
pub struct Authors {
    /// The addresses in the `From` field.
    pub from: Vec<String>,
    /// The addresses in the `Resent-From` field, if there are any. They name the account that
    /// forwards the message unchanged (RFC 5322 section 3.6.6).
    pub resent_from: Option<Vec<String>>,
}

impl Authors {
    /// Finds the authors in a header. `is_cut`: only the beginning of the header is given. `None`:
    /// the authors cannot be determined.
    pub fn of(header: &[u8], is_cut: bool) -> Option<Authors> {
        let from = addresses_of(header, is_cut).ok()?;
        // The topmost field was added last.
        let resent_from = Header::new(header)
            .field("Resent-From")
            .and_then(|field| field.unambiguous_addresses());
        Some(Authors { from, resent_from: resent_from.filter(|addresses| !addresses.is_empty()) })
    }
}
