//! HPACK: blocks of fields, decoded and encoded.
//!
//! The first byte selects the content of the rest: blocks from a peer, or a status and fields to
//! encode.
//!
//! Oracles:
//! - Any input: no panic, and the decoder keeps at most the allowed number of fields and bytes.
//! - As long as both decoders accept the blocks, they read the same fields from each. This also
//!   holds after a block with more fields than the engine's decoder keeps.
//! - Both decoders read the encoder's output. The encoder fails only when the buffer is full.

use heapless::Vec as Block;
use http2::{
    Decoder, FIELDS_MAX, FieldList, LIST_BYTES_MAX, encode_field, encode_secret, encode_status,
};

/// The octets that a field counts in addition to its name and value (RFC 9113 section 6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// The size of the encoder's buffer. Inputs can exceed it.
const BLOCK_BYTES: usize = 1024;

type Pair = (Vec<u8>, Vec<u8>);

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[first], rest)) = data.split_first_chunk() else { return };
    match first % 4 {
        0 => encode(rest),
        _ => decode(rest),
    }
}

/// Decodes blocks. A byte before each block holds its length; the last block may be shorter.
fn decode(mut bytes: &[u8]) {
    let (mut ours, mut theirs) = (Decoder::new(), loona_hpack::Decoder::new());
    while let Some((&length, rest)) = bytes.split_first() {
        let (block, rest) = rest.split_at(usize::from(length).min(rest.len()));
        bytes = rest;
        let mut fields = FieldList::new();
        let result = ours.decode(block, &mut fields);
        let pairs = pairs(&fields);
        let Ok(()) = result else { return };
        let Ok(expected) = theirs.decode(block) else { return };
        if fields.is_too_large() {
            assert!(pairs.len() < expected.len(), "a list that is too large lacks fields");
            let mut expected = expected.iter();
            assert!(
                pairs.iter().all(|pair| expected.any(|other| other == pair)),
                "a kept field is not in the block"
            );
        } else {
            assert_eq!(pairs, expected, "{block:02x?}");
        }
    }
}

/// The fields of a block that the decoder has kept. Checks their limits.
fn pairs(fields: &FieldList) -> Vec<Pair> {
    let pairs: Vec<Pair> =
        fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    let bytes: usize =
        pairs.iter().map(|(name, value)| name.len() + value.len() + FIELD_OVERHEAD).sum();
    assert!(
        pairs.len() <= FIELDS_MAX && bytes <= LIST_BYTES_MAX,
        "{} fields, {bytes} bytes",
        pairs.len()
    );
    pairs
}

/// Encodes a status and fields. The input has two bytes for the status. Then it has for each field
/// the length of the name, the length of the value, the name and the value.
fn encode(bytes: &[u8]) {
    let Some((&[high, low], mut bytes)) = bytes.split_first_chunk() else { return };
    let status = 100 + u16::from_be_bytes([high, low]) % 900;
    let mut block = Block::<u8, BLOCK_BYTES>::new();
    encode_status(&mut block, status).expect("there is room for a status");
    let mut expected = vec![(b":status".to_vec(), status.to_string().into_bytes())];
    while let Some((&[name_length, value_length], rest)) = bytes.split_first_chunk() {
        let (name, rest) = rest.split_at(usize::from(name_length % 64).min(rest.len()));
        let (value, rest) = rest.split_at(usize::from(value_length).min(rest.len()));
        bytes = rest;
        let encode = if name_length < 128 { encode_field } else { encode_secret };
        let before = block.len();
        if encode(&mut block, name, value).is_err() {
            // The two lengths take at most two bytes each, and the byte before them one.
            assert!(before + name.len() + value.len() + 5 > BLOCK_BYTES, "there was room");
            return;
        }
        expected.push((name.to_ascii_lowercase(), value.to_vec()));
    }
    let theirs = loona_hpack::Decoder::new().decode(&block);
    assert_eq!(theirs.as_ref().ok(), Some(&expected), "another decoder reads the encoded fields");
    let mut fields = FieldList::new();
    assert_eq!(Decoder::new().decode(&block, &mut fields), Ok(()));
    assert!(fields.is_too_large() || pairs(&fields) == expected, "our decoder reads them, too");
}
