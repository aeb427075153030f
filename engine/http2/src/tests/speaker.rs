//! An encoder for tests of the decoder. It writes every form of field, with or without Huffman
//! code.

use std::string::String;
use std::sync::LazyLock;
use std::vec::Vec;

use proptest::prelude::*;

use crate::hpack::huffman;
use crate::{Decoder, FieldList, HpackError};

/// A decoded field.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

pub(super) fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<(Vec<Pair>, bool), HpackError> {
    let mut fields = FieldList::new();
    decoder.decode(block, &mut fields)?;
    let pairs = fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    Ok((pairs, fields.is_too_large()))
}

pub(super) fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u32> = hexadecimal.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A string, and whether it has Huffman code.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    pub(super) is_coded: bool,
}

/// One item of a block.
#[derive(Clone, Debug)]
pub(super) enum Word {
    Indexed(usize),
    /// A literal: the high bits of its form, the index of its name, its name if the index is 0, and
    /// its value.
    Literal(u8, usize, Text, Text),
    Limit(usize),
}

fn number(block: &mut Vec<u8>, above: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return block.push(above | value as u8);
    }
    block.push(above | most as u8);
    let mut left = value - most;
    while left >= 128 {
        block.push(left as u8 | 128);
        left >>= 7;
    }
    block.push(left as u8);
}

fn string(block: &mut Vec<u8>, text: &Text) {
    let coded = if text.is_coded { coded(&text.bytes) } else { text.bytes.clone() };
    number(block, u8::from(text.is_coded) << 7, 7, coded.len());
    block.extend(coded);
}

/// The Huffman code of a string, bit by bit.
pub(super) fn coded(bytes: &[u8]) -> Vec<u8> {
    static CODES: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..256).map(huffman::bits_of).collect());
    let mut bits: String = bytes.iter().map(|byte| CODES[usize::from(*byte)].as_str()).collect();
    while !bits.len().is_multiple_of(8) {
        bits.push('1');
    }
    bits.as_bytes()
        .chunks(8)
        .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
        .collect()
}

pub(super) fn block(words: &[Word]) -> Vec<u8> {
    let mut block = Vec::new();
    for word in words {
        match word {
            Word::Indexed(index) => number(&mut block, 0x80, 7, *index),
            Word::Limit(limit) => number(&mut block, 0x20, 5, *limit),
            Word::Literal(form, index, name, value) => {
                number(&mut block, *form, if *form == 0x40 { 6 } else { 4 }, *index);
                if *index == 0 {
                    string(&mut block, name);
                }
                string(&mut block, value);
            }
        }
    }
    block
}

fn text(length: usize) -> impl Strategy<Value = Text> {
    (prop::collection::vec(any::<u8>(), 0..length), any::<bool>())
        .prop_map(|(bytes, is_coded)| Text { bytes, is_coded })
}

pub(super) fn word() -> impl Strategy<Value = Word> {
    let form = prop::sample::select(std::vec![0x40u8, 0x40, 0x00, 0x10]);
    prop_oneof![
        4 => (1usize..70).prop_map(Word::Indexed),
        6 => (form, prop_oneof![Just(0usize), 1usize..70], text(60), text(900))
            .prop_map(|(form, index, name, value)| Word::Literal(form, index, name, value)),
    ]
}
