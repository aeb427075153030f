//! Tests of messages beyond the limits, of which nothing is lost.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::messages::{check_any, read, read_in_pieces};
use crate::structure::{
    ADDRESS_FIELD_BYTES_MAX, DEPTH_MAX, FIELD_BYTES_MAX, Listener, PARTS_MAX, Part, StructureReader,
};

#[test]
fn bytes_after_the_last_part_are_one_more_part() {
    // The parts are in multiparts of several levels, with more parts after each level. Below, they
    // are attached messages.
    let opening = "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n";
    let many = "--b\r\n\r\nx\r\n".repeat(PARTS_MAX - 2);
    let rest = "Content-Type: image/png\r\n\r\nMore\r\n--b\r\n\r\nMore\r\n--b--\r\n--a\r\n\r\nLast\r\n--a--\r\nEpilogue\r\n";
    for inner in ["--b\r\n", "--a\r\n"] {
        let message = format!("{opening}{many}{inner}{rest}").into_bytes();
        let (structure, received) = read_in_pieces(&message, &[message.len()]);
        check_any(&message, &structure);
        for cuts in [&[1][..], &[7, 1], &[64]] {
            assert_eq!(read_in_pieces(&message, cuts), (structure.clone(), received.clone()));
        }
        let last = structure.parts.last().unwrap();
        let body = &message[last.body.start as usize..last.body.end as usize];
        assert_eq!(core::str::from_utf8(body).unwrap(), rest);
        assert!(structure.is_cut && last.depth == 1);
        assert_eq!(last.file_name.as_deref(), Some("rest of message.txt"));
    }
    let messages =
        "--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\nx\r\n".repeat(PARTS_MAX);
    let message =
        format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{messages}").into_bytes();
    let structure = read(&message);
    check_any(&message, &structure);
    assert_eq!(structure.parts.last().unwrap().body.end, message.len() as u64);
}

#[test]
fn multipart_beyond_the_depth_limit_is_not_taken_apart() {
    let level = |level: usize| {
        format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n")
    };
    let deep: String = (0..DEPTH_MAX).map(level).collect();
    let structure = read(format!("{deep}\r\nText\r\n").as_bytes());
    let deep_ones: Vec<bool> = structure.parts.iter().map(|part| part.is_too_deep).collect();
    assert!(structure.is_cut && deep_ones[DEPTH_MAX - 1]);
    assert!(!deep_ones[..DEPTH_MAX - 1].contains(&true));
    let deep: String = (0..DEPTH_MAX - 1).map(level).collect();
    let structure = read(format!("{deep}\r\nText\r\n").as_bytes());
    assert!(!structure.is_cut && !structure.parts.iter().any(|part| part.is_too_deep));
}

#[test]
fn address_field_is_passed_on_whole() {
    struct Names(Vec<usize>);
    impl Listener for Names {
        fn wants_field(&mut self, _: &Part, name: &[u8]) -> bool {
            [&b"To"[..], b"Subject"].contains(&name)
        }

        fn field_arrived(&mut self, field: &crate::header::Field<'_>) {
            self.0.push(field.value.len());
        }
    }
    let folded = "x@example.org,\r\n ".repeat(2_000);
    let plain = "x@example.org, ".repeat(2_000);
    let long = "y".repeat(ADDRESS_FIELD_BYTES_MAX);
    let message = format!(
        "To: {folded}z@x\r\nTo: {plain}z@x\r\nSubject: {plain}\r\nTo: {long}\r\nTo: a@b\r\n\r\nx\r\n"
    );
    for cuts in [&[usize::MAX][..], &[1], &[3], &[32_000], &[8_191, 2]] {
        let (mut reader, mut names, mut rest) =
            (StructureReader::new(), Names(Vec::new()), message.as_bytes());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            reader.bytes_arrived(piece, &mut names);
            rest = after;
        }
        reader.message_ended(&mut names);
        let whole = [&folded, &plain].map(|list| list.len() + " z@x".len());
        let cut = [FIELD_BYTES_MAX - "Subject:".len(), ADDRESS_FIELD_BYTES_MAX - "To:".len()];
        assert_eq!(names.0, [whole[0], whole[1], cut[0], cut[1], " a@b".len()], "{cuts:?}");
    }
}
