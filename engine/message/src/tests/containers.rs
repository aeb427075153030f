//! Tests of the containers that Outlook sends.

use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use crate::tnef::*;

/// An attribute of a container.
fn attribute(identifier: u16, value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u32).to_le_bytes();
    [&[2][..], &identifier.to_le_bytes(), &[1, 0], &length, value, &[0, 0]].concat()
}

/// A container with these attributes.
fn container(attributes: &[Vec<u8>]) -> Vec<u8> {
    [&[0x78, 0x9f, 0x3e, 0x22, 1, 0][..], &attributes.concat()].concat()
}

/// A property with a value of variable size.
fn property(kind: u16, identifier: u16, value: &[u8]) -> Vec<u8> {
    let [kind, identifier] = [kind, identifier].map(u16::to_le_bytes);
    let size = (value.len() as u32).to_le_bytes();
    let padding = &[0; 3][..(4 - value.len() % 4) % 4];
    [&kind[..], &identifier, &[1, 0, 0, 0], &size, value, padding].concat()
}

fn properties(all: &[Vec<u8>]) -> Vec<u8> {
    [&(all.len() as u32).to_le_bytes()[..], &all.concat()].concat()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// A container after reading, with the content of one file.
type Read = (Vec<(String, Option<u64>)>, String, Vec<u8>);

fn read(container: &[u8], wanted: usize, piece_bytes: usize) -> Read {
    let (mut reader, mut content) = (TnefReader::default(), Vec::new());
    for piece in container.chunks(piece_bytes) {
        reader.bytes_arrived(piece, Some(wanted), &mut content);
    }
    let files = reader.files().iter().map(|file| (file.name.clone(), file.bytes)).collect();
    (files, reader.text().to_string(), content)
}

/// A container with files and a text, as Outlook writes it.
fn example() -> Vec<u8> {
    let named = [
        // A named property with a number, one with a text, and one with a number of its own.
        [&[3, 0, 0, 0x80][..], &[9; 16], &[0; 4], &[7, 0, 0, 0], &[1, 2, 3, 4]].concat(),
        [
            &[0x0b, 0, 1, 0x80][..],
            &[9; 16],
            &[1, 0, 0, 0, 5, 0, 0, 0],
            b"abcde\0\0\0",
            &[1, 0, 0, 0],
        ]
        .concat(),
        [&[0x03, 0x10, 2, 0x20][..], &[2, 0, 0, 0], &[5; 8]].concat(),
        property(0x1f, 0x3707, &utf16("C:\\files\\Über das Wetter.txt")),
    ];
    container(&[
        attribute(0x9007, &[0xe4, 4, 0, 0, 0, 0, 0, 0]),
        attribute(0x9003, &properties(&[property(0x1e, 0x1000, b"Hello caf\xe9\0")])),
        attribute(0x9002, &[0; 14]),
        attribute(0x8010, b"BERDAS~1.TXT\0"),
        attribute(0x800f, b"It rains."),
        attribute(0x9005, &properties(&named)),
        attribute(0x9002, &[0; 14]),
        attribute(0x8010, b"caf\xe9.bin\0"),
        attribute(0x800f, b""),
        attribute(0x9002, &[0; 14]),
        attribute(0x9005, &properties(&[property(0x0d, 0x3701, b"an embedded message")])),
    ])
}

#[test]
fn files_and_text_of_a_container_are_read() {
    let container = example();
    let files = vec![
        ("Über das Wetter.txt".to_string(), Some(9)),
        ("café.bin".to_string(), Some(0)),
        (String::new(), None),
    ];
    for piece_bytes in [1, 2, 7, 1_000] {
        let expected = (files.clone(), "Hello café".to_string(), b"It rains.".to_vec());
        assert_eq!(read(&container, 0, piece_bytes), expected);
        assert_eq!(read(&container, 1, piece_bytes).2, b"");
        assert_eq!(read(&container, 9, piece_bytes).2, b"");
    }
    let body = self::container(&[attribute(0x800c, b"text\0more")]);
    assert_eq!(read(&body, 0, 1_000).1, "text");
    for (page, bytes, expected) in [(1251_u16, b"\xcf\xf0", "Пр"), (932, b"\x93\xfa", "日")] {
        let page = attribute(0x9007, &[&page.to_le_bytes()[..], &[0; 6]].concat());
        let body = self::container(&[page, attribute(0x800c, bytes)]);
        assert_eq!(read(&body, 0, 1_000).1, expected);
    }
}

#[test]
fn damaged_containers_are_read_as_far_as_possible() {
    assert_eq!(read(b"", 0, 10), read(b"no container", 0, 10));
    let container = example();
    let whole = read(&container, 0, 1_000);
    for end in 0..container.len() {
        let (files, _, content) = read(&container[..end], 0, 1_000);
        assert!(files.len() <= whole.0.len() && whole.2.starts_with(&content));
    }
    let level = [&container[..6], &[9], &container[7..]].concat();
    assert_eq!(read(&level, 0, 1_000).0, []);
    // A length beyond the end.
    let long = [
        &self::container(&[attribute(0x9002, &[])])[..],
        &[2, 0x0f, 0x80, 6, 0, 255, 255, 255, 255, 1],
    ]
    .concat();
    assert_eq!(read(&long, 0, 1_000), (vec![(String::new(), Some(1))], String::new(), vec![1]));
}

#[test]
fn containers_are_bounded() {
    let file = [attribute(0x9002, &[]), attribute(0x8010, &[b'x'; 1_000]), attribute(0x800f, b"1")]
        .concat();
    let many = container(&vec![file; TNEF_FILES_MAX + 5]);
    let (files, _, content) = read(&many, TNEF_FILES_MAX - 1, 100);
    assert_eq!((files.len(), content.len()), (TNEF_FILES_MAX, 1));
    assert!(files.iter().all(|(name, _)| name.len() == 255));
    let long_name = [[b'a'; 60_000].to_vec(), [b'/'].to_vec(), [b'x'; 5_000].to_vec()].concat();
    let named = container(&[attribute(0x9002, &[]), attribute(0x8010, &long_name)]);
    let mut reader = TnefReader::default();
    reader.bytes_arrived(&named, None, &mut Vec::new());
    assert_eq!((reader.files()[0].name.len(), reader.files()[0].name.capacity()), (255, 255));
}

#[test]
fn a_long_text_of_a_container_is_cut() {
    let text = |attributes: &[Vec<u8>]| {
        let mut reader = TnefReader::default();
        reader.bytes_arrived(&container(attributes), None, &mut Vec::new());
        (reader.text().len(), reader.is_text_cut())
    };
    let body = |length: usize| property(0x1e, 0x1000, &vec![b'x'; length]);
    let other = property(0x0102, 0x1009, &[1; 70_000]);
    for (attributes, expected) in [
        (attribute(0x800c, &[b'x'; 65_536]), (65_536, false)),
        (attribute(0x800c, &[b'x'; 1_000_000]), (65_536, true)),
        (attribute(0x9003, &properties(&[body(1_000)])), (1_000, false)),
        // The other properties are long, but not the text.
        (attribute(0x9003, &properties(&[body(1_000), other.clone()])), (1_000, false)),
        (attribute(0x9003, &properties(&[body(70_000)])), (65_520, true)),
        (attribute(0x9003, &properties(&[other.clone(), body(1_000)])), (0, true)),
        (attribute(0x9005, &properties(&[other])), (0, false)),
    ] {
        assert_eq!(text(&[attributes]), expected);
    }
}

#[test]
fn names_in_a_container_are_visible() {
    let name = property(0x1f, 0x3707, &utf16("a/\u{202e}gpj\u{200b}.ex\u{7}e"));
    let container = container(&[attribute(0x9002, &[]), attribute(0x9005, &properties(&[name]))]);
    assert_eq!(read(&container, 0, 1_000).0, [("gpj.exe".to_string(), None)]);
}

proptest! {
    #[test]
    fn any_container_is_read_the_same_for_all_cuts(
        attributes in proptest::collection::vec(
            (
                prop_oneof![
                    Just(0x9002_u16), Just(0x8010), Just(0x800f), Just(0x9005), Just(0x9003),
                    Just(0x9007), Just(0x800c), any::<u16>(),
                ],
                proptest::collection::vec(any::<u8>(), 0..60),
            ),
            0..12,
        ),
        damage: Option<(proptest::sample::Index, u8)>,
        piece_bytes in 1_usize..40,
    ) {
        let attributes: Vec<Vec<u8>> =
            attributes.iter().map(|(identifier, value)| attribute(*identifier, value)).collect();
        let mut container = container(&attributes);
        if let Some((at, byte)) = damage {
            let length = container.len();
            container[at.index(length)] = byte;
        }
        let whole = read(&container, 1, usize::MAX);
        prop_assert_eq!(&read(&container, 1, piece_bytes), &whole);
        prop_assert!(whole.0.iter().all(|(name, _)| !name.contains(|c: char| c.is_control())));
    }
}
