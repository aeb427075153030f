//! Checks senders for a test suite. It reads each sender from its input, prints each question about
//! records, and reads the answer from its input.
//!
//! ```text
//! > check TAB address TAB hello TAB local part TAB domain
//! < ask TAB A|AAAA|MX|TXT|PTR TAB name
//! > records TAB value, in hexadecimal for a text; or: silence
//! < verdict TAB fail
//! ```
use std::io::{self, BufRead, Write};
use std::net::IpAddr;

use dns::{Answer, Knowledge, Missing, Name, Record, RecordKind, Unanswered};
use spf::{SpfSender, check};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next().transpose()? {
        let fields: Vec<&str> = line.split('\t').collect();
        let ["check", address, hello, local_part, domain] = fields[..] else {
            return Err(line.into());
        };
        let sender = SpfSender { address: address.parse()?, hello, local_part, domain };
        let mut knowledge = Knowledge::default();
        let verdict = loop {
            let Missing(question) = match check(&sender, &knowledge) {
                Ok(verdict) => break verdict,
                Err(missing) => missing,
            };
            say(format_args!("ask\t{}\t{}", mnemonic(question.kind), question.name))?;
            let answer = lines.next().ok_or("the input ends")??;
            let answer = read(&answer, question.kind)?;
            knowledge.learn(question, answer);
        };
        say(format_args!("verdict\t{verdict}"))?;
    }
    Ok(())
}

fn say(line: std::fmt::Arguments<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn mnemonic(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Ipv4 => "A",
        RecordKind::Ipv6 => "AAAA",
        RecordKind::Exchanger => "MX",
        RecordKind::Text => "TXT",
        RecordKind::Pointer => "PTR",
        RecordKind::Tlsa => "TLSA",
        RecordKind::Service => "SRV",
    }
}

fn read(line: &str, kind: RecordKind) -> Result<Result<Answer, Unanswered>, Failure> {
    let mut fields = line.split('\t');
    if fields.next() != Some("records") {
        return Ok(Err(Unanswered::Silence));
    }
    let records = fields.map(|value| record(value, kind)).collect::<Result<Vec<_>, _>>()?;
    Ok(Ok(Answer { exists: true, is_authenticated: false, records }))
}

fn record(value: &str, kind: RecordKind) -> Result<Record, Failure> {
    let name = |text: &str| Name::parse(text).map_err(|_| format!("{text} is no name"));
    Ok(match kind {
        RecordKind::Ipv4 | RecordKind::Ipv6 => Record::Address(value.parse::<IpAddr>()?),
        RecordKind::Exchanger => Record::Exchanger { preference: 0, host: name(value)? },
        RecordKind::Pointer => Record::Pointer(name(value)?),
        RecordKind::Text | RecordKind::Tlsa | RecordKind::Service => {
            let digits: Vec<char> = value.chars().collect();
            let bytes = digits
                .chunks(2)
                .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16));
            Record::Text(bytes.collect::<Result<Vec<u8>, _>>()?.into())
        }
    })
}
