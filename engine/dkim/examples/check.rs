//! Verifies and signs messages that are named on its input, so that anybody else's can be tried on it, and it on anybody else.
//!
//! ```text
//! > verify TAB now TAB the message's pieces, each behind a TAB, in hexadecimal
//! < ask TAB name
//! > records TAB texts, in hexadecimal; or: silence
//! < verdicts TAB dkim=pass header.d=… TAB …
//! > sign TAB now TAB key in PKCS#8, in hexadecimal TAB domain TAB selector TAB pieces
//! < signed TAB record TAB field in hexadecimal
//! ```
use std::io::{self, BufRead, Lines, StdinLock, Write};

use dkim::{Message, Reading, SigningKey};
use dns::{Answer, Knowledge, Missing, Name, Question, Record, Unanswered};
use machine::UnixTime;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next().transpose()? {
        let fields: Vec<&str> = line.split('\t').collect();
        match &fields[..] {
            ["verify", now, pieces @ ..] => {
                let message = read(Reading::to_verify(), pieces)?;
                let verdicts = verdicts(&message, UnixTime::from_seconds(now.parse()?), &mut lines)?;
                say(format_args!("verdicts\t{}", verdicts.join("\t")))?;
            }
            ["sign", now, key, domain, selector, pieces @ ..] => {
                let key = SigningKey::new(&bytes(key)?, selector).map_err(|why| format!("{why:?}"))?;
                let domain = Name::parse(domain).map_err(|why| format!("{why:?}"))?;
                let message = read(Reading::to_sign(), pieces)?;
                let field = message
                    .sign(&key, &domain, UnixTime::from_seconds(now.parse()?))
                    .map_err(|why| format!("{why:?}"))?;
                let field: String = field.bytes().map(|byte| format!("{byte:02x}")).collect();
                say(format_args!("signed\t{}\t{field}", key.record()))?;
            }
            _ => return Err(line.into()),
        }
    }
    Ok(())
}

fn read(mut reading: Reading, pieces: &[&str]) -> Result<Message, Failure> {
    for piece in pieces {
        reading.arrived(&bytes(piece)?);
    }
    Ok(reading.ended())
}

fn verdicts(message: &Message, now: UnixTime, lines: &mut Lines<StdinLock<'_>>) -> Result<Vec<String>, Failure> {
    let mut knowledge = Knowledge::default();
    let mut verdicts = Vec::new();
    // Of a message without signatures the first one's verdict says so.
    while verdicts.len() < message.signatures().max(1) {
        match message.verify(verdicts.len(), &knowledge, now) {
            Ok(verdict) => verdicts.push(verdict.to_string()),
            Err(Missing(question)) => learn(&mut knowledge, question, lines)?,
        }
    }
    Ok(verdicts)
}

fn learn(knowledge: &mut Knowledge, question: Question, lines: &mut Lines<StdinLock<'_>>) -> Result<(), Failure> {
    say(format_args!("ask\t{}", question.name))?;
    let line = lines.next().ok_or("the input ends")??;
    let mut fields = line.split('\t');
    let answer = match fields.next() {
        Some("records") => {
            let texts = fields.map(|text| Ok(Record::Text(bytes(text)?.into())));
            let records = texts.collect::<Result<Vec<_>, Failure>>()?;
            Ok(Answer { exists: true, is_authenticated: false, records })
        }
        _ => Err(Unanswered::Silence),
    };
    knowledge.learn(question, answer);
    Ok(())
}

fn say(line: std::fmt::Arguments<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn bytes(hexadecimal: &str) -> Result<Vec<u8>, Failure> {
    let digits: Vec<char> = hexadecimal.chars().collect();
    let bytes = digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16));
    Ok(bytes.collect::<Result<_, _>>()?)
}
