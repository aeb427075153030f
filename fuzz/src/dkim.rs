//! DKIM signatures and ARC chains: from any sender, with any published keys, and those that we sign
//! and seal.
//!
//! Oracles:
//! - Any input: no panic. Verdicts do not depend on how the message was cut, and only names of keys
//!   are asked for.
//! - A verdict is one line of text that a header field may hold.
//! - What we sign or seal passes with the key that we publish, whatever it is, and its lines need
//!   no folding.

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

/// When it is, where the message is cut, a key, and after a zero the message.
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
    assert_eq!(whole, cut, "neither does what a chain comes to");
    let verdict = whole.to_string();
    assert!(verdict.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{verdict}");
    signs(&input, now);
    seals(&input, whole, now);
}

fn signs(input: &Input<'_>, now: UnixTime) {
    let key = SigningKey::new(&KEY, "key").expect("a key");
    let domain = Name::parse("example.test").expect("a name");
    let Ok(field) =
        read(MessageReader::to_sign(), input.message, input.cuts).sign(&key, &domain, now)
    else {
        return;
    };
    let lines = field.strip_suffix("\r\n").expect("a field ends with its line");
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

fn seals(input: &Input<'_>, found: ChainVerdict, now: UnixTime) {
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
    // Another's keys are not the same, and one more set may be one too many to be asked for.
    assert!(
        again == ChainVerdict::Pass || found != ChainVerdict::None,
        "{again}: {}",
        sealing.fields()
    );
}

/// Reads a message that is cut at these hundredths.
fn read(mut reading: MessageReader, message: &[u8], cuts: [u8; 3]) -> CompleteMessage {
    let mut rest = message;
    for cut in cuts {
        let at = usize::from(cut) * message.len() / 100;
        let (piece, behind) = rest.split_at(at.min(rest.len()));
        reading.arrived(piece);
        rest = behind;
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
