//! Records: what a domain publishes (RFC 9989, policy record format). What of a record cannot be understood is as if it were not there.

/// What is to be done with a letter that nobody proves to be its author's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Handling {
    /// Nothing.
    None,
    /// It is suspicious.
    Quarantine,
    /// It is to be refused.
    Reject,
}

/// A record.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// For the domain itself.
    pub(crate) own: Handling,
    /// For domains below it, if that is something else.
    pub(crate) below: Option<Handling>,
    /// For domains below it that there are not, if that is something else.
    pub(crate) below_nothing: Option<Handling>,
    pub(crate) role: Role,
    /// Whether signatures have to be of the very domain.
    pub(crate) is_strict_for_signatures: bool,
    /// Whether senders have to be of the very domain.
    pub(crate) is_strict_for_senders: bool,
    /// Whether the domain only tests.
    pub(crate) is_test: bool,
}

/// What a domain is to those around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It does not say.
    Unsaid,
    /// Those below it are others' (`psd=y`).
    Public,
    /// What is below it is its own, and nothing above it (`psd=n`).
    Organization,
}

/// A tag that says what is to be done.
enum Wish {
    Unsaid,
    Said(Handling),
    Nonsense,
}

/// Whether a text is a record of this version.
pub(crate) fn is_record(text: &[u8]) -> bool {
    tags(text).next() == Some((&b"v"[..], &b"DMARC1"[..]))
}

impl Record {
    /// Reads a text that [`is_record`]. `None` where what is to be done is nonsense, and nobody is there to be told.
    pub(crate) fn read(text: &[u8]) -> Option<Record> {
        let get = |wanted: &[u8]| {
            tags(text).find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
        };
        let is = |name: &[u8], wanted: &[u8]| {
            get(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        let role = match () {
            () if is(b"psd", b"y") => Role::Public,
            () if is(b"psd", b"n") => Role::Organization,
            () => Role::Unsaid,
        };
        let wishes = [b"p".as_slice(), b"sp", b"np"].map(|name| wish(get(name)));
        let is_nonsense = wishes.iter().any(|wish| matches!(wish, Wish::Nonsense));
        if is_nonsense && !get(b"rua").is_some_and(names_somebody) {
            return None;
        }
        let [own, below, below_nothing] = wishes.map(|wish| match wish {
            Wish::Said(handling) if !is_nonsense => Some(handling),
            _ => None,
        });
        Some(Record {
            own: own.unwrap_or(Handling::None),
            below,
            below_nothing,
            role,
            is_strict_for_signatures: is(b"adkim", b"s"),
            is_strict_for_senders: is(b"aspf", b"s"),
            is_test: is(b"t", b"y"),
        })
    }
}

/// Names and values, without white space around them.
fn tags(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|byte| *byte == b';').filter_map(|tag| {
        let equals = tag.iter().position(|byte| *byte == b'=')?;
        Some((tag.get(..equals)?.trim_ascii(), tag.get(equals + 1..)?.trim_ascii()))
    })
}

fn wish(value: Option<&[u8]>) -> Wish {
    let Some(value) = value else { return Wish::Unsaid };
    let handlings = [
        (&b"none"[..], Handling::None),
        (b"quarantine", Handling::Quarantine),
        (b"reject", Handling::Reject),
    ];
    let handling = handlings.into_iter().find(|(name, _)| value.eq_ignore_ascii_case(name));
    handling.map_or(Wish::Nonsense, |(_, handling)| Wish::Said(handling))
}

/// Whether a list of addresses has one that can be written to.
fn names_somebody(value: &[u8]) -> bool {
    let is_address = |address: &[u8]| {
        let scheme = address
            .split_at_checked(7)
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"mailto:"));
        scheme.is_some_and(|(_, address)| address.iter().skip(1).any(|byte| *byte == b'@'))
    };
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).any(is_address)
}
