//! Questions and answers in the wire format (RFC 1035 §4), which the crate `domain` reads and
//! writes.
//!
//! An answer belongs to our question if it repeats the identifier and the question byte for byte,
//! including the random upper and lower case (draft-vixie-dnsext-dns0x20). An attacker that cannot
//! see the question has to guess the identifier, the upper and lower case, and the port.

use alloc::vec::Vec;
use core::net::IpAddr;

use domain::base::iana::{Opcode, Rcode};
use domain::base::message_builder::MessageBuilder;
use domain::base::name::ToLabelIter;
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, ParsedName, ParsedRecord, Rtype, ToName};
use domain::rdata::{A, Aaaa, Cname, Mx, Ptr, Soa, Srv, Txt};

use crate::name::{Labels, Name};
use crate::question::{Answer, Question, Record, RecordKind, Unanswered};

/// The most bytes of an answer in one datagram (RFC 9715 §3): more would be fragmented.
const DATAGRAM_BYTES_MAX: u16 = 1232;
/// The length of a header.
const HEADER_BYTES: usize = 12;
/// The most aliases of a chain that are followed.
const ALIASES_MAX: usize = 12;
/// The most records of an answer that are read.
const RECORDS_MAX: usize = 128;

/// The longest time for which an answer is cached, in seconds.
const TTL_MAX: u32 = 86_400;
/// The longest time for which a negative answer is cached, in seconds (RFC 2308 §5).
const NEGATIVE_TTL_MAX: u32 = 3_600;

type Read<'a> = ParsedRecord<'a, [u8]>;

/// A question in the form in which it is sent.
pub(crate) struct OutgoingQuery {
    /// The whole message.
    pub(crate) bytes: Vec<u8>,
    /// The range of the question in `bytes`. A correct answer has the same bytes at the same place.
    question: core::ops::Range<usize>,
}

impl OutgoingQuery {
    /// Writes a question. `cases`: random bits, one for each alphabetic character of the name.
    /// `None`: the name is not valid.
    pub(crate) fn new(
        question: &Question,
        identifier: u16,
        mut cases: impl FnMut() -> bool,
    ) -> Option<OutgoingQuery> {
        let name = question.name.labels()?;
        let mut builder = MessageBuilder::new_vec();
        let header = builder.header_mut();
        header.set_id(identifier);
        header.set_rd(true);
        // Asks the server to say whether the answer is authenticated (RFC 6840 §5.7).
        header.set_ad(true);
        let mut builder = builder.question();
        builder.push((&name, question.kind.rtype())).ok()?;
        let length = builder.as_slice().len();
        let mut builder = builder.additional();
        builder
            .opt(|options| {
                options.set_udp_payload_size(DATAGRAM_BYTES_MAX);
                Ok(())
            })
            .ok()?;
        let mut bytes = builder.finish();
        // The length of a label is at most 63, so it is never the code of an alphabetic character.
        // So the case of all bytes of the name can be changed.
        let name = bytes.iter_mut().skip(HEADER_BYTES).take(name.compose_len().into());
        for byte in name.filter(|byte| byte.is_ascii_alphabetic()) {
            if cases() {
                *byte ^= 0x20;
            }
        }
        Some(OutgoingQuery { bytes, question: HEADER_BYTES..length })
    }

    /// The bytes of `bytes` in the place of our question, and our question. A correct answer has
    /// equal bytes there.
    fn repeated_in<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], &[u8])> {
        Some((bytes.get(self.question.clone())?, self.bytes.get(self.question.clone())?))
    }
}

/// A message that has arrived for a question, after it was read.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum ReceivedReply {
    /// The answer, valid for this many seconds.
    Answer(Answer, u32),
    /// The server has no answer.
    Unanswered(Unanswered),
    /// The answer was truncated.
    Truncated,
    /// The message does not answer this question. It may be forged.
    Foreign,
}

/// Reads a reply to a question. `is_stream`: the reply came on a stream, where an attacker cannot
/// guess. So on a stream the server may change the case of the name.
pub(crate) fn read(
    bytes: &[u8],
    question: &Question,
    sent: &OutgoingQuery,
    is_stream: bool,
) -> ReceivedReply {
    let Ok(message) = Message::from_slice(bytes) else { return ReceivedReply::Foreign };
    let (header, counts) = (message.header(), message.header_counts());
    let is_repeated = sent.repeated_in(bytes).is_some_and(|(theirs, ours)| {
        if is_stream { theirs.eq_ignore_ascii_case(ours) } else { theirs == ours }
    });
    let is_reply = header.qr()
        && header.opcode() == Opcode::QUERY
        && sent.bytes.starts_with(&header.id().to_be_bytes());
    // A server that does not understand a question may leave it out of its reply.
    let is_refusal = is_reply
        && counts.qdcount() == 0
        && ![Rcode::NOERROR, Rcode::NXDOMAIN].contains(&header.rcode());
    if is_refusal {
        return ReceivedReply::Unanswered(Unanswered::Refused(header.rcode()));
    }
    if !is_reply || counts.qdcount() != 1 || !is_repeated {
        return ReceivedReply::Foreign;
    }
    match header.rcode() {
        _ if header.tc() && !is_stream => ReceivedReply::Truncated,
        Rcode::NOERROR | Rcode::NXDOMAIN => match read_answer(message, question) {
            Some((answer, ttl)) => ReceivedReply::Answer(answer, ttl),
            None => ReceivedReply::Unanswered(Unanswered::Nonsense),
        },
        refusal => ReceivedReply::Unanswered(Unanswered::Refused(refusal)),
    }
}

/// Reads the records of an answer, and its lifetime in seconds. `None`: a relevant part is cut off
/// or malformed.
fn read_answer(message: &Message<[u8]>, question: &Question) -> Option<(Answer, u32)> {
    let mut all = Vec::new();
    for record in message.answer().ok()?.take(RECORDS_MAX) {
        all.push(record.ok()?);
    }
    let mut ttl = TTL_MAX;
    let owner = follow_aliases(&all, &question.name, &mut ttl)?;
    let mut records = Vec::new();
    for record in all.iter().filter(|record| record.rtype() == question.kind.rtype()) {
        if record.owner().name_eq(&owner) {
            records.push(read_record(record, question.kind)?);
            ttl = ttl.min(record.ttl().as_secs());
        }
    }
    if records.is_empty() {
        ttl = ttl.min(negative_ttl(message).unwrap_or(0));
    }
    let exists = message.header().rcode() == Rcode::NOERROR;
    Some((Answer { records, exists, is_authenticated: message.header().ad() }, ttl))
}

/// The owner of the records, after all aliases. `None`: the aliases form a circle, or a chain that
/// is too long.
fn follow_aliases(all: &[Read<'_>], name: &Name, ttl: &mut u32) -> Option<Labels> {
    let mut owner = name.labels()?;
    for _ in 0..=ALIASES_MAX {
        let mut aliases = all.iter().filter(|record| record.rtype() == Rtype::CNAME);
        let Some(alias) = aliases.find(|record| record.owner().name_eq(&owner)) else {
            return Some(owner);
        };
        *ttl = (*ttl).min(alias.ttl().as_secs());
        owner = alias.to_record::<Cname<ParsedName<&[u8]>>>().ok()??.data().cname().to_vec();
    }
    None
}

fn read_record(record: &Read<'_>, kind: RecordKind) -> Option<Record> {
    Some(match kind {
        RecordKind::Ipv4 => {
            Record::Address(IpAddr::V4(record.to_record::<A>().ok()??.data().addr()))
        }
        RecordKind::Ipv6 => {
            Record::Address(IpAddr::V6(record.to_record::<Aaaa>().ok()??.data().addr()))
        }
        RecordKind::Exchanger => {
            let read = record.to_record::<Mx<ParsedName<&[u8]>>>().ok()??;
            Record::Exchanger {
                preference: read.data().preference(),
                host: Name::of(read.data().exchange()),
            }
        }
        RecordKind::Text => {
            let read = record.to_record::<Txt<&[u8]>>().ok()??;
            Record::Text(read.data().iter().flatten().copied().collect())
        }
        RecordKind::Pointer => Record::Pointer(Name::of(
            record.to_record::<Ptr<ParsedName<&[u8]>>>().ok()??.data().ptrdname(),
        )),
        RecordKind::Tlsa => {
            let read = record.to_record::<UnknownRecordData<&[u8]>>().ok()??;
            let &[usage, selector, matching, ref data @ ..] = *read.data().data() else {
                return None;
            };
            Record::Tlsa { usage, selector, matching, data: data.into() }
        }
        RecordKind::Service => {
            let read = record.to_record::<Srv<ParsedName<&[u8]>>>().ok()??;
            let (service, host) = (read.data(), Name::of(read.data().target()));
            Record::Service {
                priority: service.priority(),
                weight: service.weight(),
                port: service.port(),
                host,
            }
        }
    })
}

/// The lifetime of a negative answer, in seconds (RFC 2308 §5). `None`: the answer states no
/// lifetime, and is not cached.
fn negative_ttl(message: &Message<[u8]>) -> Option<u32> {
    let mut authorities = message.authority().ok()?.limit_to::<Soa<ParsedName<&[u8]>>>();
    let start = authorities.next()?.ok()?;
    Some(start.ttl().as_secs().min(start.data().minimum().as_secs()).min(NEGATIVE_TTL_MAX))
}
