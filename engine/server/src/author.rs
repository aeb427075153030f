//! In whose name a message is written: the addresses in its field `From`, and their domain.

use alloc::string::String;
use alloc::vec::Vec;

use dns::Name;
use message::header::{Address, Field, Header};

/// Whose message it says that it is.
pub(crate) enum Author {
    /// Nothing, yet.
    Unknown,
    Of(Name),
    Nobody,
    /// That cannot be told, for this reason.
    Untold(&'static str),
}

impl Author {
    /// As a header says, of which there is more if it `is_cut`.
    pub(crate) fn of(header: &[u8], is_cut: bool) -> Author {
        if is_cut {
            return Author::Untold("the header is too long to tell whose it is");
        }
        let mut fields = fields_of(header);
        let first = fields.next();
        if fields.next().is_some() {
            return Author::Untold("it says more than once whose it is");
        }
        let addresses = first.into_iter().flat_map(addresses_in);
        let mut domains: Vec<Name> = addresses.filter_map(|address| domain_of(&address)).collect();
        domains.dedup();
        match (domains.pop(), domains.is_empty()) {
            (None, _) => Author::Nobody,
            (Some(domain), true) => Author::Of(domain),
            (Some(_), false) => Author::Untold("it names people of several domains as its authors"),
        }
    }
}

/// Who has written it, as all that a header says of that; names without an address are left out.
pub(crate) fn authors(header: &[u8]) -> Vec<String> {
    fields_of(header).flat_map(addresses_in).filter(|address| address.contains('@')).collect()
}

fn fields_of(header: &[u8]) -> impl Iterator<Item = Field<'_>> {
    Header::new(header).fields().filter(|field| field.is("From"))
}

fn addresses_in(field: Field<'_>) -> Vec<String> {
    let entries = field.addresses().into_iter().flat_map(|entry| match entry {
        Address::Mailbox(mailbox) => Vec::from([mailbox]),
        Address::Group { mailboxes, .. } => mailboxes,
    });
    entries.map(|mailbox| mailbox.address).collect()
}

/// An address of a host is no domain: nobody speaks for it.
fn domain_of(address: &str) -> Option<Name> {
    let (_, domain) = address.rsplit_once('@')?;
    let is_literal = domain.starts_with('[');
    Name::of_bytes(domain.as_bytes()).ok().filter(|_| !is_literal)
}
