//! Verifies and signs messages for a comparison with other implementations. It reads requests and
//! the answers about keys from its input.
//!
//! ```text
//! > verify TAB now TAB the message's pieces, each after a TAB, in hexadecimal
//! < ask TAB name
//! > records TAB texts, in hexadecimal; or: silence
//! < verdicts TAB dkim=pass header.d=… TAB …
//! > sign TAB now TAB key in PKCS#8, in hexadecimal TAB domain TAB selector TAB pieces
//! < signed TAB record TAB field in hexadecimal
//! > chain TAB now TAB pieces
//! < ask …, as above
//! < verdicts TAB arc=pass
//! > seal TAB as sign, up to the selector TAB none or pass TAB results, in hexadecimal TAB pieces
//! < signed TAB record TAB fields in hexadecimal
//! ```
use std::io::{self, BufRead, Lines, StdinLock, Write};

use dkim::{ChainVerdict, CompleteMessage, MessageReader, Sealing, SigningKey};
use dns::{Answer, Knowledge, Missing, Name, Question, Record, Unanswered};
use machine::UnixTime;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next().transpose()? {
        let fields: Vec<&str> = line.split('\t').collect();
        match &fields[..] {
            ["verify", now, pieces @ ..] => {
                let message = read(MessageReader::to_verify(), pieces)?;
                let verdicts =
                    verdicts(&message, UnixTime::from_seconds(now.parse()?), &mut lines)?;
                say(format_args!("verdicts\t{}", verdicts.join("\t")))?;
            }
            ["sign", now, key, domain, selector, pieces @ ..] => {
                let (key, domain) = signer(key, domain, selector)?;
                let message = read(MessageReader::to_sign(), pieces)?;
                let field = message
                    .sign(&key, &domain, UnixTime::from_seconds(now.parse()?))
                    .map_err(|why| format!("{why:?}"))?;
                say(format_args!("signed\t{}\t{}", key.record(), hexadecimal(&field)))?;
            }
            ["chain", now, pieces @ ..] => {
                let message = read(MessageReader::to_verify(), pieces)?;
                let verdict = chain(&message, UnixTime::from_seconds(now.parse()?), &mut lines)?;
                say(format_args!("verdicts\t{verdict}"))?;
            }
            ["seal", now, key, domain, selector, found, results, pieces @ ..] => {
                let (key, domain) = signer(key, domain, selector)?;
                let message = read(MessageReader::to_sign(), pieces)?;
                let found = if *found == "none" { ChainVerdict::None } else { ChainVerdict::Pass };
                let fields = set(
                    &message,
                    found,
                    &bytes(results)?,
                    (&key, &domain),
                    UnixTime::from_seconds(now.parse()?),
                )?;
                say(format_args!("signed\t{}\t{}", key.record(), hexadecimal(&fields)))?;
            }
            _ => return Err(line.into()),
        }
    }
    Ok(())
}

fn read(mut reading: MessageReader, pieces: &[&str]) -> Result<CompleteMessage, Failure> {
    for piece in pieces {
        reading.arrived(&bytes(piece)?);
    }
    Ok(reading.ended())
}

fn verdicts(
    message: &CompleteMessage,
    now: UnixTime,
    lines: &mut Lines<StdinLock<'_>>,
) -> Result<Vec<String>, Failure> {
    let mut knowledge = Knowledge::default();
    let mut verdicts = Vec::new();
    // A message without signatures has one verdict, which says that it is not signed.
    while verdicts.len() < message.signatures().max(1) {
        match message.verify(verdicts.len(), &knowledge, now) {
            Ok(verdict) => verdicts.push(verdict.to_string()),
            Err(Missing(question)) => learn(&mut knowledge, question, lines)?,
        }
    }
    Ok(verdicts)
}

fn chain(
    message: &CompleteMessage,
    now: UnixTime,
    lines: &mut Lines<StdinLock<'_>>,
) -> Result<ChainVerdict, Failure> {
    let (mut knowledge, mut step) = (Knowledge::default(), 0);
    loop {
        match message.judge_chain(step, &knowledge, now) {
            Ok(Some(verdict)) => return Ok(verdict),
            Ok(None) => step += 1,
            Err(Missing(question)) => learn(&mut knowledge, question, lines)?,
        }
    }
}

fn set(
    message: &CompleteMessage,
    found: ChainVerdict,
    results: &[u8],
    (key, domain): (&SigningKey, &Name),
    now: UnixTime,
) -> Result<String, Failure> {
    let results = str::from_utf8(results)?;
    let mut sealing = Sealing::begin(message, found, results).map_err(|why| format!("{why:?}"))?;
    while sealing.is_open() {
        sealing.sign(message, key, domain, now).map_err(|why| format!("{why:?}"))?;
    }
    Ok(sealing.fields())
}

fn signer(key: &str, domain: &str, selector: &str) -> Result<(SigningKey, Name), Failure> {
    let key = SigningKey::new(&bytes(key)?, selector).map_err(|why| format!("{why:?}"))?;
    Ok((key, Name::parse(domain).map_err(|why| format!("{why:?}"))?))
}

fn hexadecimal(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn learn(
    knowledge: &mut Knowledge,
    question: Question,
    lines: &mut Lines<StdinLock<'_>>,
) -> Result<(), Failure> {
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
    let bytes =
        digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16));
    Ok(bytes.collect::<Result<_, _>>()?)
}
