//! Comparisons of the decoder and the encoder with another implementation.

use std::vec::Vec;

use heapless::Vec as Block;
use proptest::prelude::*;

use super::speaker::{Word, block, coded, decode, word};
use crate::hpack::huffman;
use crate::{Decoder, FieldList, encode_field, encode_status};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn blocks_decode_as_with_another_decoder(
        blocks in prop::collection::vec((prop::option::of(0usize..=4096), prop::collection::vec(word(), 1..8)), 1..8),
    ) {
        let (mut ours, mut theirs) = (Decoder::new(), loona_hpack::Decoder::new());
        for (limit, words) in blocks {
            let items: Vec<Word> = limit.map(Word::Limit).into_iter().chain(words).collect();
            let block = block(&items);
            match (decode(&mut ours, &block), theirs.decode(&block)) {
                (Ok((pairs, false)), Ok(expected)) => prop_assert_eq!(pairs, expected),
                (Ok((pairs, true)), Ok(expected)) => prop_assert!(pairs.len() < expected.len()),
                (Err(_), Err(_)) => break,
                (ours, theirs) => prop_assert!(false, "{:?} {:?}", ours, theirs),
            }
        }
    }

    #[test]
    fn huffman_strings_decode_as_with_another_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let coded = coded(&bytes);
        let mut decoded = Vec::new();
        prop_assert_eq!(huffman::decode(&coded, |byte| decoded.push(byte)), Ok(()));
        prop_assert_eq!(&decoded, &bytes);
        prop_assert_eq!(loona_hpack::huffman::HuffmanDecoder::new().decode(&coded).ok(), Some(bytes));
    }

    #[test]
    fn no_bytes_break_the_decoder(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..5)) {
        let mut decoder = Decoder::new();
        for block in blocks {
            let mut fields = FieldList::new();
            if decoder.decode(&block, &mut fields).is_err() {
                break;
            }
        }
    }

    #[test]
    fn another_decoder_reads_our_encoding(
        status in 100u16..1000,
        fields in prop::collection::vec(("(?i)(date|etag|x-[a-z]{1,9}|content-type|vary)", "[ -~]{0,300}"), 0..6),
    ) {
        let mut block = Block::<u8, 4096>::new();
        encode_status(&mut block, status).unwrap();
        let mut expected = Vec::from([(b":status".to_vec(), std::format!("{status}").into_bytes())]);
        for (name, value) in &fields {
            encode_field(&mut block, name.as_bytes(), value.as_bytes()).unwrap();
            expected.push((name.to_ascii_lowercase().into_bytes(), value.clone().into_bytes()));
        }
        prop_assert_eq!(loona_hpack::Decoder::new().decode(&block).ok(), Some(expected));
    }
}
