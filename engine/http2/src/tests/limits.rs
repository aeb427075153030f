//! The decoder's limits on memory, fields and integers.

use std::vec::Vec;

use heapless::Vec as Block;

use super::speaker::{Text, Word, block, bytes, coded, decode};
use crate::hpack::huffman;
use crate::{
    BufferFull, Decoder, FIELDS_MAX, HpackError, LIST_BYTES_MAX, TABLE_BYTES_MAX, encode_field,
};

fn plain(text: &[u8]) -> Text {
    Text { bytes: text.to_vec(), is_coded: false }
}

fn kept(name: &[u8], value: &[u8]) -> Word {
    Word::Literal(0x40, 0, plain(name), plain(value))
}

#[test]
fn malformed_header_blocks_are_rejected() {
    for (block, why) in [
        ("80", "index 0"),
        ("be", "an index without an entry"),
        ("ff", "an incomplete number"),
        ("ffff ffff ffff ff0f", "a number that is too large"),
        ("ff80 8080 8080 00", "a number of too many bytes"),
        ("40", "no name"),
        ("4001 61", "no value"),
        ("4002 61", "an incomplete name"),
        ("4081 0001 61", "an incomplete Huffman code"),
        ("4081 ff01 61", "a string of 8 bits of padding only"),
        ("4084 ffff ffff 01 61", "the end symbol within a coded string"),
        ("4081 1901 61", "padding that is not the start of the end symbol: a 1 and zeros"),
        ("3fe2 1f", "a limit above our maximum"),
        ("82 20", "a limit after a field"),
    ] {
        assert_eq!(decode(&mut Decoder::new(), &bytes(block)), Err(HpackError), "{why}");
    }
    assert!(decode(&mut Decoder::new(), &bytes("3fe1 1f 20 82")).is_ok(), "limits at the start");
}

#[test]
fn an_entry_above_the_table_limit_empties_the_table() {
    for value in [TABLE_BYTES_MAX - 33, TABLE_BYTES_MAX - 32, TABLE_BYTES_MAX, 7000] {
        let mut decoder = Decoder::new();
        assert!(decode(&mut decoder, &block(&[kept(b"a", b"b"), Word::Indexed(62)])).is_ok());
        assert!(decode(&mut decoder, &block(&[kept(b"a", &std::vec![b'x'; value])])).is_ok());
        let found = decode(&mut decoder, &block(&[Word::Indexed(62)]));
        assert_eq!(found.is_ok(), value == TABLE_BYTES_MAX - 33, "{value}");
        assert_eq!(decode(&mut decoder, &block(&[Word::Indexed(63)])), Err(HpackError));
    }
}

#[test]
fn the_dynamic_table_never_exceeds_its_limit() {
    let mut decoder = Decoder::new();
    for round in 0..500usize {
        let value = std::vec![b'v'; round * 37 % 2500];
        let words = [
            kept(b"name", &value),
            kept(&round.to_be_bytes(), b""),
            Word::Indexed(62),
            Word::Indexed(63),
        ];
        let (pairs, _) = decode(&mut decoder, &block(&words)).unwrap();
        assert_eq!(pairs[2], (round.to_be_bytes().to_vec(), Vec::new()));
        assert_eq!(pairs[3], (b"name".to_vec(), value));
        assert!(
            decoder.memory_bytes() <= TABLE_BYTES_MAX + TABLE_BYTES_MAX / 4,
            "{}",
            decoder.memory_bytes()
        );
    }
    assert!(decode(&mut decoder, &block(&[Word::Limit(0)])).is_ok());
    assert_eq!(
        decode(&mut decoder, &block(&[Word::Indexed(62)])),
        Err(HpackError),
        "a limit of 0 removes all entries"
    );
    assert_eq!(decoder.memory_bytes(), 0, "a limit of 0 frees the memory");
}

#[test]
fn excess_fields_are_dropped_but_enter_the_table() {
    let mut decoder = Decoder::new();
    let words: Vec<Word> =
        (0..FIELDS_MAX + 1).map(|_| Word::Indexed(2)).chain([kept(b"last", b"one")]).collect();
    let (pairs, is_too_large) = decode(&mut decoder, &block(&words)).unwrap();
    assert_eq!((pairs.len(), is_too_large), (FIELDS_MAX, true));
    let (pairs, is_too_large) = decode(&mut decoder, &bytes("be")).unwrap();
    assert_eq!((pairs, is_too_large), (Vec::from([(b"last".to_vec(), b"one".to_vec())]), false));
    // The limit in bytes, with an entry that is repeated.
    let words = [
        kept(b"a", &[b'x'; 3000]),
        Word::Indexed(62),
        Word::Indexed(62),
        kept(b"b", b"y"),
        Word::Indexed(63),
    ];
    let (pairs, is_too_large) = decode(&mut decoder, &block(&words)).unwrap();
    assert_eq!((pairs.len(), is_too_large), (2, true));
    let expected =
        Vec::from([(b"b".to_vec(), b"y".to_vec()), (b"a".to_vec(), std::vec![b'x'; 3000])]);
    assert_eq!(decode(&mut decoder, &bytes("bebf")).unwrap(), (expected, false));
    let whole = [kept(b"n", &std::vec![b'x'; LIST_BYTES_MAX - 33])];
    assert!(!decode(&mut Decoder::new(), &block(&whole)).unwrap().1);
    let beyond = [kept(b"n", &std::vec![b'x'; LIST_BYTES_MAX - 32])];
    assert!(decode(&mut Decoder::new(), &block(&beyond)).unwrap().1);
}

#[test]
fn a_string_ends_with_less_than_a_byte_of_padding() {
    let coded = coded(b"aaaaa");
    assert_eq!(huffman::decode(&coded, |_| {}), Ok(()));
    let longer: Vec<u8> = coded.iter().copied().chain([0xff]).collect();
    assert_eq!(huffman::decode(&longer, |_| {}), Err(HpackError));
    assert_eq!(huffman::decode(&[], |_| {}), Ok(()));
}

#[test]
fn hpack_encoding_fails_without_space() {
    let mut block = Block::<u8, 8>::new();
    assert_eq!(encode_field(&mut block, b"date", b"12345"), Ok(()));
    assert_eq!(encode_field(&mut Block::<u8, 8>::new(), b"date", b"123456"), Err(BufferFull));
    assert_eq!(encode_field(&mut Block::<u8, 8>::new(), b"x-name", b""), Err(BufferFull));
}
