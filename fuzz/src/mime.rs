//! Messages: any message is parsed, decoded and summarized. The result does not depend on the
//! pieces in which the message arrives. A message that a user composes reads back unchanged.

use arbitrary::{Arbitrary, Unstructured};
use machine::UnixTime;
use message::calendar::{Calendar, EventTime};
use message::compose::{AttachedFile, Composer, Files, NewMessage};
use message::header::{Address, Field, Header, HeaderMailbox};
use message::structure::{DEPTH_MAX, PARTS_MAX, Part, Structure, StructureReader};
use message::tnef::TnefReader;
use message::{BodyDecoder, SUMMARY_BYTES, Summary, TextDecoder, report, summarize};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    cuts: [u8; 3],
    is_written: bool,
    name: &'a str,
    subject: &'a str,
    text: &'a str,
    file: &'a [u8],
    message: &'a [u8],
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let message = match *input.file {
        _ if input.is_written => written(&input),
        [b'L', deep, before, ..] => [&near_limits(deep, before), input.message].concat(),
        _ => input.message.to_vec(),
    };
    let structure = read(&message, &[u8::MAX]);
    check(&message, &structure);
    assert_eq!(read(&message, &input.cuts), structure, "the structure does not depend on cuts");
    structure.parts.iter().for_each(|part| contents(&message, part, &input.cuts));
    summary(&message);
    Header::new(&message).fields().for_each(|field| {
        assert!(is_line(&field.text()) && is_line(field.parameters().value()));
        let _ = (field.date(), field.identifiers().count());
        check_unambiguous(&field);
        for address in field.addresses() {
            let mailboxes = match address {
                Address::Mailbox(mailbox) => vec![mailbox],
                Address::Group { mailboxes, .. } => mailboxes,
            };
            assert!(
                mailboxes.iter().all(|mailbox| is_line(&mailbox.name) && is_line(&mailbox.address))
            );
        }
    });
}

/// The start of a message that is close to both limits of the parser: the depth of nested
/// multiparts, and the number of parts. The outermost multipart has most of the parts. Short inputs
/// would not reach these limits.
fn near_limits(deep: u8, before: u8) -> Vec<u8> {
    let opening = |level: usize| {
        format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n")
    };
    let start: String = (0..usize::from(deep) % (DEPTH_MAX + 4)).map(opening).collect();
    let parts = read(start.as_bytes(), &[u8::MAX]).parts.len() + usize::from(before) % 8;
    [start.as_bytes(), &b"\r\n--b0\r\n\r\nx".repeat(PARTS_MAX.saturating_sub(parts)), b"\r\n"]
        .concat()
}

/// Checks that the unambiguous addresses of a field are the addresses that the webmail shows.
fn check_unambiguous(field: &Field<'_>) {
    let mailboxes = field.addresses().into_iter().flat_map(|entry| match entry {
        Address::Mailbox(mailbox) => vec![mailbox],
        Address::Group { mailboxes, .. } => mailboxes,
    });
    let shown: Vec<String> =
        mailboxes.map(|mailbox| mailbox.address).filter(|address| !address.is_empty()).collect();
    assert!(field.unambiguous_addresses().is_none_or(|read| read == shown));
}

fn is_line(text: &str) -> bool {
    !text.contains(|c: char| c.is_control())
}

fn read(message: &[u8], cuts: &[u8]) -> Structure {
    let mut reader = StructureReader::new();
    pieces(message, cuts).for_each(|piece| reader.bytes_arrived(piece, &mut ()));
    reader.message_ended(&mut ())
}

fn pieces<'a>(mut bytes: &'a [u8], cuts: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    cuts.iter().cycle().map_while(move |cut| {
        let (piece, rest) = bytes.split_at(usize::from(*cut).max(1).min(bytes.len()));
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Checks that parts are nested or follow each other, and lie inside the message.
fn check(message: &[u8], structure: &Structure) {
    assert!((1..=PARTS_MAX + usize::from(structure.is_cut)).contains(&structure.parts.len()));
    let mut ends = Vec::new();
    let mut start = 0;
    for part in &structure.parts {
        assert!(part.depth < DEPTH_MAX && part.depth <= ends.len());
        ends.truncate(part.depth);
        assert!(start <= part.header.start && part.header.start <= part.header.end);
        assert!(part.header.end == part.body.start && part.body.start <= part.body.end);
        assert!(part.body.end <= ends.last().copied().unwrap_or(message.len() as u64));
        ends.push(part.body.end);
        start = part.header.end;
    }
}

fn contents(message: &[u8], part: &Part, cuts: &[u8]) {
    let body = &message[part.body.start as usize..part.body.end as usize];
    let decoded = |cuts: &[u8]| {
        let (mut decoder, mut out) = (BodyDecoder::new(part.encoding), Vec::new());
        pieces(body, cuts).for_each(|piece| decoder.bytes_arrived(piece, &mut out));
        decoder.body_ended(&mut out);
        out
    };
    let text = |cuts: &[u8]| {
        let (mut decoder, mut out) = (TextDecoder::new(part), String::new());
        pieces(body, cuts).for_each(|piece| decoder.bytes_arrived(piece, &mut out));
        decoder.body_ended(&mut out);
        out
    };
    assert_eq!(decoded(cuts), decoded(&[u8::MAX]), "bytes do not depend on cuts");
    let container = |cuts: &[u8]| {
        let (mut reader, mut out) = (TnefReader::default(), Vec::new());
        pieces(body, cuts).for_each(|piece| reader.bytes_arrived(piece, Some(0), &mut out));
        (reader.files().to_vec(), reader.text().to_string(), out)
    };
    assert_eq!(container(cuts), container(&[u8::MAX]), "containers do not depend on cuts");
    let text_of_part = text(&[u8::MAX]);
    assert_eq!(text(cuts), text_of_part, "text does not depend on cuts");
    for recipient in report::delivery_report(&text_of_part).iter().flat_map(|it| &it.recipients) {
        assert!(is_line(&recipient.address) && is_line(&recipient.diagnostic));
    }
    let calendar = Calendar::read(body, part.charset.as_deref());
    for event in calendar.iter().flat_map(|calendar| &calendar.events) {
        assert!(is_line(&event.summary) && is_line(&event.organizer.name));
        if let Some(EventTime::Local { zone, .. }) = &event.start {
            assert!(is_line(zone));
        }
    }
    let receipt = report::read_receipt(&text_of_part);
    assert!(receipt.is_none_or(|receipt| is_line(&receipt.address)));
}

fn summary(message: &[u8]) {
    let (mut bytes, mut again) = ([0; SUMMARY_BYTES], [0; SUMMARY_BYTES]);
    let (length, conversation) = summarize(message, &mut bytes);
    let summary = Summary::read(&bytes[..length]).expect("a new summary can be read");
    assert_eq!(conversation, summary.conversation);
    let written = summary.write(&mut again);
    assert_eq!(&again[..written], &bytes[..length], "a summary is written as it was read");
    if let Some(summary) = Summary::read(message) {
        let length = summary.write(&mut bytes);
        assert_eq!(&bytes[..length], message, "an accepted summary is written as it was read");
    }
}

/// Composes the message of a user, and checks that it reads back unchanged. Returns the message.
fn written(input: &Input<'_>) -> Vec<u8> {
    let from =
        HeaderMailbox { name: input.name.to_string(), address: "ada@example.org".to_string() };
    let new = NewMessage {
        from: &from,
        to: &[from.clone(), from.clone()],
        cc: &[],
        bcc: &[],
        subject: input.subject,
        date: UnixTime::from_seconds(880_127_706),
        message_id: "1@example.org",
        in_reply_to: Some(input.name.as_bytes()),
        references: &[input.message, b"2@example.org"],
        text: input.text,
        html: None,
        secret: 1,
        files: Files::Some,
    };
    let mut message = Vec::new();
    let mut composer = Composer::begin(&new, &mut message).expect("the addresses are valid");
    composer
        .file_began(&AttachedFile { name: input.subject, media_type: input.name }, &mut message);
    pieces(input.file, &input.cuts).for_each(|piece| composer.bytes_arrived(piece, &mut message));
    composer.file_ended(&mut message);
    composer.message_ended(&mut message);

    let header = Header::new(&message);
    let as_line = |text: &str| text.replace(|c: char| c.is_control(), " ").trim().to_string();
    let field = |name| header.field(name).expect("the field was written");
    assert_eq!(field("Subject").text(), as_line(input.subject));
    let expected = Address::Mailbox(HeaderMailbox { name: as_line(input.name), ..from.clone() });
    assert_eq!(field("To").addresses(), [expected.clone(), expected]);
    let structure = read(&message, &[u8::MAX]);
    let [_, _, file] = &structure.parts[..] else { panic!("the message has a text and a file") };
    let mut decoded = Vec::new();
    let mut decoder = BodyDecoder::new(file.encoding);
    decoder.bytes_arrived(&message[file.body.start as usize..file.body.end as usize], &mut decoded);
    decoder.body_ended(&mut decoded);
    assert_eq!(decoded, input.file);
    assert!(message.split(|byte| *byte == b'\n').all(|line| line.len() <= 999));
    message
}
