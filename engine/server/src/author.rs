//! In whose name a message is written: the domain in its field `From`.

use alloc::vec::Vec;

use dns::Name;
use message::header::{Address, Header};

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
        let mut fields = Header::new(header).fields().filter(|field| field.is("From"));
        let first = fields.next();
        if fields.next().is_some() {
            return Author::Untold("it says more than once whose it is");
        }
        let entries = first.map(|field| field.addresses()).unwrap_or_default();
        let mailboxes = entries.into_iter().flat_map(|entry| match entry {
            Address::Mailbox(mailbox) => Vec::from([mailbox]),
            Address::Group { mailboxes, .. } => mailboxes,
        });
        let mut domains: Vec<Name> = mailboxes.filter_map(|mailbox| domain_of(&mailbox.address)).collect();
        domains.dedup();
        match (domains.pop(), domains.is_empty()) {
            (None, _) => Author::Nobody,
            (Some(domain), true) => Author::Of(domain),
            (Some(_), false) => Author::Untold("it names people of several domains as its authors"),
        }
    }
}

/// An address of a host is no domain: nobody speaks for it.
fn domain_of(address: &str) -> Option<Name> {
    let (_, domain) = address.rsplit_once('@')?;
    let is_literal = domain.starts_with('[');
    Name::of_bytes(domain.as_bytes()).ok().filter(|_| !is_literal)
}
