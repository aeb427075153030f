//! DKIM signatures and ARC chains: those of any message, checked with any published key, and those
//! that we add.
//!
//! Oracles:
//! - Any input: no panic. Verdicts do not depend on the pieces in which the message arrives. The
//!   verifier asks the DNS only for names of keys.
//! - A verdict is one line of text that a header field may contain.
//! - Our signature of any message passes with the key that we publish. So does our ARC seal, unless
//!   the message already had a chain. The lines of a signature need no further folding.

use dkim::{ChainVerdict, CompleteMessage, MessageReader, Sealing, SignatureOutcome, SigningKey};
use dns::{Answer, Knowledge, Missing, Name, Record, RecordKind};
use machine::UnixTime;

/// An Ed25519 key in PKCS#8. Its secret is 32 zeros.
const KEY: [u8; 48] = {
    let mut key = [0; 48];
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let mut at = 0;
    while at < head.len() {
        key[at] = head[at];
        at += 1;
    }
    key
};

/// The time, the lengths of the pieces of the message, the published key, and the message after a
/// zero byte.
struct Input<'a> {
    now: u32,
    cuts: [u8; 3],
    key: &'a [u8],
    message: &'a [u8],
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(([a, b, c, d, cuts @ ..], rest)) = data.split_first_chunk::<7>() else { return };
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (key, message) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let input = Input { now: u32::from_be_bytes([*a, *b, *c, *d]), cuts: *cuts, key, message };
    let now = UnixTime::from_seconds(input.now.into());
    let whole =
        verdicts(&read(MessageReader::to_verify(), input.message, [255; 3]), input.key, now);
    let cut =
        verdicts(&read(MessageReader::to_verify(), input.message, input.cuts), input.key, now);
    assert_eq!(whole, cut, "a verdict does not depend on cuts");
    let whole = chain(&read(MessageReader::to_verify(), input.message, [255; 3]), input.key, now);
    let cut = chain(&read(MessageReader::to_verify(), input.message, input.cuts), input.key, now);
    assert_eq!(whole, cut, "the verdict of a chain does not depend on cuts");
    let verdict = whole.to_string();
    assert!(verdict.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{verdict}");
    check_signature(&input, now);
    check_seal(&input, whole, now);
}

fn check_signature(input: &Input<'_>, now: UnixTime) {
    let key = SigningKey::new(&KEY, "key").expect("a key");
    let domain = Name::parse("example.test").expect("a name");
    let Ok(field) =
        read(MessageReader::to_sign(), input.message, input.cuts).sign(&key, &domain, now)
    else {
        return;
    };
    let lines = field.strip_suffix("\r\n").expect("a field ends with CRLF");
    assert!(
        lines.split("\r\n").skip(1).all(|line| line.starts_with(' ') && line.len() < 78),
        "{field}"
    );
    let signed = [field.as_bytes(), input.message].concat();
    let verdicts = verdicts(
        &read(MessageReader::to_verify(), &signed, input.cuts),
        key.record().as_bytes(),
        now,
    );
    assert_eq!(
        verdicts.first().map(|(outcome, _)| *outcome),
        Some(SignatureOutcome::Pass),
        "{field}"
    );
}

fn check_seal(input: &Input<'_>, found: ChainVerdict, now: UnixTime) {
    let key = SigningKey::new(&KEY, "key").expect("a key");
    let domain = Name::parse("example.test").expect("a name");
    let message = read(MessageReader::to_sign(), input.message, input.cuts);
    let Ok(mut sealing) = Sealing::begin(&message, found, "mx.test; arc=none") else { return };
    while sealing.is_open() {
        if sealing.sign(&message, &key, &domain, now).is_err() {
            return;
        }
    }
    let sealed = [sealing.fields().as_bytes(), input.message].concat();
    let again =
        chain(&read(MessageReader::to_verify(), &sealed, input.cuts), key.record().as_bytes(), now);
    // If the message had a chain, our chain may fail: the keys of the other seals differ from ours,
    // and with our set the chain may need more keys than a verifier looks up.
    assert!(
        again == ChainVerdict::Pass || found != ChainVerdict::None,
        "{again}: {}",
        sealing.fields()
    );
}

/// Reads a message in pieces. Each of `cuts` is the length of a piece, in percent of the message's
/// length.
fn read(mut reading: MessageReader, message: &[u8], cuts: [u8; 3]) -> CompleteMessage {
    let mut rest = message;
    for cut in cuts {
        let at = usize::from(cut) * message.len() / 100;
        let (piece, after) = rest.split_at(at.min(rest.len()));
        reading.arrived(piece);
        rest = after;
    }
    reading.arrived(rest);
    reading.ended()
}

fn chain(message: &CompleteMessage, key: &[u8], now: UnixTime) -> ChainVerdict {
    let (mut knowledge, mut step) = (Knowledge::default(), 0);
    loop {
        match message.judge_chain(step, &knowledge, now) {
            Ok(Some(verdict)) => return verdict,
            Ok(None) => step += 1,
            Err(Missing(question)) => {
                assert!(
                    message.missing(&knowledge, now).contains(&question),
                    "the question was announced as missing"
                );
                let records = vec![Record::Text(key.into())];
                knowledge
                    .learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
            }
        }
    }
}

fn verdicts(
    message: &CompleteMessage,
    key: &[u8],
    now: UnixTime,
) -> Vec<(SignatureOutcome, String)> {
    let mut knowledge = Knowledge::default();
    let mut verdicts = Vec::new();
    while verdicts.len() <= message.signatures() {
        match message.verify(verdicts.len(), &knowledge, now) {
            Ok(verdict) => {
                let text = verdict.to_string();
                assert!(text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{text}");
                verdicts.push((verdict.outcome(), text));
            }
            Err(Missing(question)) => {
                assert!(
                    question.kind == RecordKind::Text
                        && question.name.as_str().contains("._domainkey.")
                );
                let records = vec![Record::Text(key.into())];
                knowledge
                    .learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
            }
        }
    }
    verdicts
}
