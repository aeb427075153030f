//! The ARC set of a forwarded message: a set of fields that our domain signs (crate `dkim`). It
//! states the results of the checks when the message arrived.
//!
//! The recipient's server gets the message from our address, which the domain of the author does
//! not allow to send its mail. An earlier server may have changed the message, so the signature of
//! the author's domain may be invalid. Our ARC set shows the recipient's server what we have
//! checked. Before such a message is put into the outbox for its first forwarding address, it is
//! read once and hashed. Then two signatures are computed, as for messages of our own users
//! (`signing`). One set serves all recipients. If the power fails, the set is made again for the
//! remaining recipients.
//!
//! There is no set for:
//! - a message with a chain that has failed or could not be checked: the recipient's server sees
//!   that without our set;
//! - a message that has our set already, from another account of ours: it has not changed since.
//!
//! Invariant: of a message, memory never holds more than its header and one part that the store has
//! read.

use alloc::boxed::Box;
use alloc::string::String;

use accounts::entries::domain_of;
use compute::{JobNumber, JobResult};
use dkim::{ChainVerdict, CompleteMessage, MessageReader, Sealing, UnsignedField};
use dns::Name;
use store::Refusal;

use super::OutboundWaitPoint;
use super::attempt_context::AttemptCx;
use super::entry::Entry;
use super::forwarding::OWN;
use super::reader::EntryReader;

/// The ARC set (RFC 8617) of a message that is forwarded.
pub(super) struct ArcSeal {
    state: SealState,
}

/// The state of making an ARC set.
enum SealState {
    /// The attempt has not decided yet whether the message gets a set.
    Unknown,
    /// The message is being hashed. The set will state these check results.
    Hashing(Box<MessageReader>, ArrivalChecks),
    /// A signature is being computed.
    Signing(Box<Unsealed>),
    /// The fields of the set. Empty: the message gets no set.
    Made(String),
}

/// A message for which the ARC set is being signed.
struct Unsealed {
    message: CompleteMessage,
    sealing: Sealing,
    /// The domain that signs the set.
    domain: Name,
    /// The next field. Its signature is being computed.
    field: UnsignedField,
    job: JobNumber,
}

/// The results of the checks when the message arrived.
struct ArrivalChecks {
    /// The text of its `Authentication-Results` field.
    results: String,
    chain: ChainVerdict,
}

/// The result of a step of making the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SealProgress {
    /// More of the message is to be read.
    Reads,
    /// A signature is being computed.
    Signs,
    /// The set is made, or there is none.
    Over,
}

impl ArcSeal {
    /// A set that was not begun.
    pub(super) fn new() -> ArcSeal {
        ArcSeal { state: SealState::Unknown }
    }

    /// Whether the attempt has not decided yet if the message gets a set.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, SealState::Unknown)
    }

    /// The fields of the set. Empty: the message gets no set.
    pub(super) fn fields(&self) -> &str {
        if let SealState::Made(fields) = &self.state { fields } else { "" }
    }

    /// Decides that the message gets no set.
    pub(super) fn leave_out(&mut self) {
        self.state = SealState::Made(String::new());
    }

    /// If the message gets a set, hashes the bytes that were read, and requests the next part.
    pub(super) fn hash(
        &mut self,
        entry: &Entry,
        reader: &mut EntryReader,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<SealProgress, Refusal> {
        if self.is_open() {
            let found = found_in(entry.header(), cx.queue.config.hostname());
            let found = found.filter(|_| cx.parts.signer.sealing_key().is_some());
            let made = SealState::Made(String::new());
            self.state = found.map_or(made, |found| {
                SealState::Hashing(Box::new(MessageReader::to_sign()), found)
            });
            reader.rewind();
        }
        let SealState::Hashing(reading, _) = &mut self.state else { return Ok(SealProgress::Over) };
        reading.arrived(&reader.take_octets());
        if reader.read_on(cx)? {
            return Ok(SealProgress::Reads);
        }
        Ok(self.hashed(entry, cx))
    }

    /// Ends the hash, and requests the first signature.
    fn hashed(&mut self, entry: &Entry, cx: &mut AttemptCx<'_, '_>) -> SealProgress {
        let domain = Name::of_bytes(domain_of(entry.address(OWN)).as_bytes());
        let hashed = core::mem::replace(&mut self.state, SealState::Made(String::new()));
        let SealState::Hashing(reading, found) = hashed else {
            unreachable!("a message was read that is not hashed")
        };
        let message = reading.ended();
        if let (Ok(sealing), Ok(domain)) =
            (Sealing::begin(&message, found.chain, &found.results), domain)
            && let Some((job, field)) = ask_signature(&message, &sealing, &domain, cx)
        {
            self.state =
                SealState::Signing(Box::new(Unsealed { message, sealing, domain, field, job }));
            return SealProgress::Signs;
        }
        SealProgress::Over
    }

    /// Takes the requested signature. A message that cannot be signed gets no set.
    pub(super) fn signature_made(&mut self, cx: &mut AttemptCx<'_, '_>) -> SealProgress {
        let made = core::mem::replace(&mut self.state, SealState::Made(String::new()));
        let SealState::Signing(unsealed) = made else { unreachable!("no signature was asked for") };
        let Unsealed { message, mut sealing, domain, field, job } = *unsealed;
        let Some(JobResult::Signed(Some(signature))) = cx.parts.compute.take_result(job) else {
            return SealProgress::Over;
        };
        sealing.signed(field, &signature);
        if !sealing.is_open() {
            self.state = SealState::Made(sealing.fields());
            return SealProgress::Over;
        }
        let Some((job, field)) = ask_signature(&message, &sealing, &domain, cx) else {
            return SealProgress::Over;
        };
        self.state =
            SealState::Signing(Box::new(Unsealed { message, sealing, domain, field, job }));
        SealProgress::Signs
    }
}

/// Requests the signature of the set's next field. `None`: it cannot be made.
fn ask_signature(
    message: &CompleteMessage,
    sealing: &Sealing,
    domain: &Name,
    cx: &mut AttemptCx<'_, '_>,
) -> Option<(JobNumber, UnsignedField)> {
    let signer = cx.parts.signer;
    let (number, key) = signer.sealing_key()?;
    let mut field = sealing.prepare(message, key, domain, cx.parts.turn.wall).ok()?;
    let at = cx.continuation(OutboundWaitPoint::Signed);
    Some((cx.parts.compute.ask_signature(at, field.take_signed(), number), field))
}

/// The results of the checks when the message arrived, from its first field. Incoming mail loses
/// every such field with our name (`message::Revision`), so this field is ours.
fn found_in(header: &[u8], hostname: &str) -> Option<ArrivalChecks> {
    let ends = memchr::memmem::find_iter(header, b"\r\n");
    let end = ends.into_iter().find(|end| !matches!(header.get(end + 2), Some(b' ' | b'\t')))?;
    let field = core::str::from_utf8(header.get(..end)?).ok()?;
    let results = field.strip_prefix("Authentication-Results: ")?;
    let (host, found) = results.split_once(";\r\n\t")?;
    let chain = found.split(";\r\n\t").find_map(|result| result.strip_prefix("arc="))?;
    let chain = match chain.split(' ').next()? {
        "none" => ChainVerdict::None,
        "pass" => ChainVerdict::Pass,
        _ => return None,
    };
    (host == hostname).then(|| ArrivalChecks { results: results.into(), chain })
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn arrival_checks_are_read_only_from_our_own_first_field() {
        let found = |header: &str| {
            found_in(header.as_bytes(), "mail.test").map(|found| (found.results, found.chain))
        };
        let ours = "mail.test;\r\n\tspf=pass;\r\n\tarc=pass smtp.remote-ip=192.0.2.7";
        let field = ["Authentication-Results: ", ours, "\r\n"].concat();
        assert_eq!(
            found(&[&field, "Subject: a\r\n"].concat()),
            Some((ours.into(), ChainVerdict::Pass))
        );
        let without = field.replace("arc=pass", "arc=none");
        assert_eq!(found(&without).map(|(_, chain)| chain), Some(ChainVerdict::None));
        for other in [
            field.replace("mail.test", "mail.other"),
            field.replace("arc=pass", "arc=fail"),
            field.replace("\r\n\tarc=pass smtp.remote-ip=192.0.2.7", "\r\n\tdkim=none"),
            ["Subject: a\r\n", &field].concat(),
            String::new(),
        ] {
            assert_eq!(found(&other), None, "{other}");
        }
    }
}
