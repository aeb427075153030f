//! The checksums of the disk: hashes under its key, and the chain of hashes in a journal. Written
//! from sections 3 to 5 of `docs/format.md`.

use std::collections::BTreeMap;

use siphasher::sip128::{Hasher128, SipHasher13};

use super::image::{Image, PAGES};

const SUPERBLOCKS: [usize; 4] = [0, 8, PAGES - 8, PAGES - 4];
const FIRST_SEGMENT_PAGE: usize = 24;

/// The modulus of the hash: the prime 2^127 - 1.
const PRIME: u128 = u128::MAX >> 1;

/// The hash of a record that consists of `parts` (section 1 of `docs/format.md`).
fn hash(key: [u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    use std::hash::Hasher;
    let secret =
        |number: u64| SipHasher13::new_with_key(&key).hash(&number.to_le_bytes()).as_bytes();
    let mut hasher = SipHasher13::new_with_key(&secret(0));
    let place = u128::from_le_bytes(secret(1)) & (PRIME >> 3);
    let words: Vec<u64> =
        (2..10).flat_map(secret).collect::<Vec<u8>>().chunks(8).map(word).collect();
    parts.iter().for_each(|part| hasher.write(&digest(part, place, &words).to_le_bytes()));
    hasher.finish128().as_bytes()
}

fn digest(bytes: &[u8], place: u128, secrets: &[u64]) -> u128 {
    bytes.chunks(128).fold(bytes.len() as u128, |value, block| {
        let mut words: Vec<u64> = block.chunks(8).map(word).collect();
        words.resize(words.len().next_multiple_of(2), 0);
        let added: Vec<u64> =
            words.iter().zip(secrets).map(|(word, secret)| word.wrapping_add(*secret)).collect();
        let products = added.chunks(2).map(|pair| u128::from(pair[0]) * u128::from(pair[1]));
        let sum = products.fold(0, u128::wrapping_add) % (1 << 126);
        (product(value, place) + sum) % PRIME
    })
}

/// Up to eight bytes as a little-endian number. Missing bytes count as zeros.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The product of `a` and `b` modulo the prime, computed one bit of `b` at a time.
fn product(a: u128, b: u128) -> u128 {
    (0..128).rev().fold(0, |sum, bit| (sum * 2 % PRIME + (b >> bit & 1) * a) % PRIME)
}

fn key_in(page: &[u8]) -> [u8; 16] {
    page[56..72].try_into().expect("16 bytes")
}

/// Recomputes the checksums of the pages in `to_renew`. The following blocks of a journal contain
/// the hash of the block before, so their checksums change too.
pub(super) fn renew(image: &mut Image) {
    for page in SUPERBLOCKS {
        if !image.to_renew.contains(&page) {
            continue;
        }
        let bytes = image.page_mut(page);
        tame(&mut bytes[32..40]);
        (0..64).for_each(|root| tame(&mut bytes[96 + 32 * root + 8..][..8]));
        let seal = hash(key_in(bytes), &[&bytes[32..2144], &bytes[..16]]);
        bytes[16..32].copy_from_slice(&seal);
    }
    // The store ignores records with a checksum under another key than the key of the superblock.
    let Some(key) = SUPERBLOCKS.into_iter().find(|page| image.page(*page).starts_with(b"BAREPOST"))
    else {
        return;
    };
    let key = key_in(image.page(key));
    let mut renamed = BTreeMap::new();
    for page in FIRST_SEGMENT_PAGE..PAGES - 8 {
        match &image.page(page)[16..20] {
            b"JRNL" => renew_block(image, page, key, &mut renamed),
            b"BODY" if image.to_renew.contains(&page) => renew_chunk(image, page, key),
            _ => {}
        }
    }
}

/// Reduces a count that is close to the highest value that the store accepts. If the store then
/// increased the count beyond this value, it would lose mail. Only a holder of the key can write
/// such a count, so the target does not test it.
fn tame(count: &mut [u8]) {
    let value = count.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    if (1 << 47..=1 << 48).contains(&value) {
        count[5..].fill(0);
    }
}

fn renew_block(
    image: &mut Image,
    page: usize,
    key: [u8; 16],
    renamed: &mut BTreeMap<[u8; 8], [u8; 8]>,
) {
    let is_changed = image.to_renew.contains(&page);
    let bytes = image.page_mut(page);
    let previous: [u8; 8] = bytes[48..56].try_into().expect("8 bytes");
    let new_previous = renamed.get(&previous).copied();
    if !is_changed && new_previous.is_none() {
        return;
    }
    tame(&mut bytes[32..40]);
    bytes[48..56].copy_from_slice(&new_previous.unwrap_or(previous));
    let old: [u8; 8] = bytes[..8].try_into().expect("8 bytes");
    let length = usize::from(u16::from_le_bytes([bytes[22], bytes[23]]));
    let end = (64 + length).min(bytes.len());
    let seal = hash(key, &[&bytes[16..end]]);
    bytes[..16].copy_from_slice(&seal);
    renamed.insert(old, seal[..8].try_into().expect("8 bytes"));
}

fn renew_chunk(image: &mut Image, page: usize, key: [u8; 16]) {
    let bytes = image.page(page);
    let length = u32::from_le_bytes([bytes[52], bytes[53], bytes[54], bytes[55]]);
    let run = image.run(page, 512 + (length as usize).min(1 << 20));
    let octets = hash(key, &[&run[512..]]);
    let bytes = image.page_mut(page);
    bytes[96..112].copy_from_slice(&octets);
    let end = 112 + usize::from(u16::from_le_bytes([bytes[22], bytes[23]]).min(400));
    let seal = hash(key, &[&bytes[16..end]]);
    bytes[..16].copy_from_slice(&seal);
}
