//! Dates, trace fields, and the changes to the header of a relayed message. A slower and simpler
//! oracle checks each of them.

use std::net::{IpAddr, Ipv6Addr};

use arbitrary::{Arbitrary, Unstructured};
use machine::UnixTime;
use message::{
    Assurance, DATE_TIME_BYTES, DateTimeNow, Origin, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX,
    Received, Reviser, Revision, WithProtocol, date_time, return_path,
};

/// The number of bytes in which a field's colon must be found.
const HELD_BYTES_MAX: usize = 256;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    seconds: [u64; 2],
    greeting_name: &'a str,
    recipient: Option<&'a str>,
    reverse_path: &'a str,
    peer: u128,
    extended: bool,
    room: u16,
    cuts: [u8; 4],
    message: &'a [u8],
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    dates(input.seconds);
    trace(&input);
    paths(&input);
    hops(input.message, input.cuts);
}

fn dates([first, second]: [u64; 2]) {
    let mut now = DateTimeNow::new(UnixTime::from_seconds(first));
    // Times close to each other and far from each other.
    for seconds in [first, second, second % 300_000_000_000, first.wrapping_add(1)] {
        let time = UnixTime::from_seconds(seconds);
        let text = date_time(time);
        assert_eq!(now.at(time), &text, "the cached date equals the computed date");
        let (year, month, day) = calendar(time.seconds().min(253_402_300_799) / 86_400);
        let names =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let text = String::from_utf8(text.to_vec()).expect("a date is ASCII");
        assert_eq!(
            text.get(5..16),
            Some(format!("{day:02} {} {year}", names[month]).as_str()),
            "{seconds} s"
        );
        assert_eq!(text.len(), DATE_TIME_BYTES);
    }
}

/// Year, month from 0 and day from 1 of a day after 1970-01-01. The function skips whole cycles of
/// the calendar, which have 400 years. Then it counts year by year and month by month.
fn calendar(mut days: u64) -> (u64, usize, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    const DAYS_IN_ROUND: u64 = 400 * 365 + 97;
    let mut year = 1970 + 400 * (days / DAYS_IN_ROUND);
    days %= DAYS_IN_ROUND;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month, days + 1)
}

fn trace(input: &Input<'_>) {
    let peer = IpAddr::V6(Ipv6Addr::from_bits(input.peer));
    let peer = if input.extended { peer } else { IpAddr::V4((input.peer as u32).into()) };
    let received = Received {
        greeting_name: shortened(input.greeting_name, 255),
        peer,
        hostname: "mail.test",
        protocol: if input.extended { WithProtocol::Esmtp } else { WithProtocol::Smtp },
        assurance: if input.extended { Assurance::Tls } else { Assurance::None },
        identifier: b"4D2",
        recipient: input.recipient.map(|recipient| shortened(recipient, 256)),
        at: b"Fri, 13 Feb 2009 23:31:30 +0000",
    };
    let mut out = [0; RECEIVED_BYTES_MAX];
    let length = received.write(&mut out).expect("there is room for the longest field");
    let field = &out[..length];
    let lines = 3 + usize::from(received.recipient.is_some());
    check_field(field, lines);
    let room = usize::from(input.room) % (RECEIVED_BYTES_MAX + 1);
    let mut small = vec![0; room];
    let written = received.write(&mut small);
    assert_eq!(
        written,
        (room >= length).then_some(length),
        "a field is written whole or not at all"
    );
    assert!(written.is_none_or(|length| small[..length] == *field));
    // The field is exactly one hop, whatever name the peer gives.
    assert_eq!(revised(field, &[]), (field.to_vec(), 1));
}

fn paths(input: &Input<'_>) {
    let mut out = [0; RETURN_PATH_BYTES_MAX];
    let path = shortened(input.reverse_path, 256);
    let length = return_path(path, &mut out).expect("there is room for the longest path");
    check_field(&out[..length], 1);
    assert_eq!(
        length,
        "Return-Path: <>\r\n".len() + path.len(),
        "each byte is kept, or replaced by one character"
    );
}

/// Checks that a field has `lines` lines, each with its CRLF. All but the first begin with a tab,
/// which is the only control character.
fn check_field(field: &[u8], lines: usize) {
    let text: Vec<&[u8]> = field.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(text.len(), lines, "a peer adds no line: {:?}", String::from_utf8_lossy(field));
    for (number, line) in text.iter().enumerate() {
        let line = line.strip_suffix(b"\r\n").expect("a line ends in CRLF");
        let content = if number == 0 { line } else { line.strip_prefix(b"\t").expect("a fold") };
        assert!(
            !content.iter().any(|byte| *byte < b' ' || *byte == 0x7f),
            "{:?}",
            String::from_utf8_lossy(line)
        );
        assert!(line.len() <= 998);
    }
}

fn hops(message: &[u8], cuts: [u8; 4]) {
    let whole = revised(message, &[]);
    assert_eq!(whole.1, hops_line_by_line(message));
    assert_eq!(revised(message, &cuts), whole, "the result does not depend on cuts");
}

/// Revises another server's message, which arrives in pieces of the sizes `cuts`. Each call of the
/// output takes at most as many bytes as the piece before had. Returns the revised message and its
/// hops.
fn revised(message: &[u8], cuts: &[u8]) -> (Vec<u8>, u16) {
    let now = date_time(UnixTime::from_seconds(0));
    let own = Reviser { hostname: "mail.test", identifier: b"x", author: "", now: &now };
    let mut revision = Revision::new(Origin::Relayed);
    let mut out = Vec::new();
    let mut room = usize::MAX;
    let mut rest = message;
    for size in cuts.iter().map(|cut| usize::from(*cut)).chain([message.len()]) {
        let (mut piece, after) = rest.split_at(rest.len().min(size));
        while !piece.is_empty() {
            let taken = revision.pass(piece, &own, |bytes| {
                let count = bytes.len().min(room);
                out.extend_from_slice(&bytes[..count]);
                Ok::<usize, ()>(count)
            });
            piece = &piece[taken.expect("nothing is refused")..];
        }
        room = size.max(1);
        rest = after;
    }
    while !revision
        .end(&own, |bytes| {
            out.push(bytes[0]);
            Ok::<usize, ()>(1)
        })
        .expect("nothing is refused")
    {}
    (out, revision.hops())
}

/// Counts the lines of the header that begin with the name `Received`, white space, and a colon.
fn hops_line_by_line(message: &[u8]) -> u16 {
    let lines = message.split_inclusive(|byte| *byte == b'\n');
    let header = lines.take_while(|line| *line != b"\n" && *line != b"\r\n");
    let hops = header.filter(|line| {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
        let name = line[..colon].to_vec();
        let end =
            name.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
        colon < HELD_BYTES_MAX && name[..end].eq_ignore_ascii_case(b"received")
    });
    hops.count().try_into().unwrap_or(u16::MAX)
}

fn shortened(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
