//! The Internet checksum (RFC 1071): a one's-complement sum of 16-bit words, computed 64 bits at a
//! time.
//!
//! A partial sum is in the byte order of the machine, and is not folded to 16 bits. Only
//! [`Sum::field`] and [`Sum::is_valid`] fold it, at the end. RFC 1071 §2 allows both.

use crate::ip::Ip;

/// A partial sum: 64 bits with end-around carry, which is the same sum modulo 0xffff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// The sum of `bytes`. Only the last summed part may have an odd length, because later parts
    /// must start at an even offset.
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Sum {
        Sum::default().and(bytes)
    }

    /// Adds `bytes`, which start at an even offset of the summed data.
    #[inline]
    pub(crate) fn and(self, bytes: &[u8]) -> Sum {
        let mut sum = self;
        let (blocks, rest) = bytes.as_chunks::<64>();
        for block in blocks {
            sum = sum.and_block(block);
        }
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            sum = sum.plus(u64::from_ne_bytes(*word));
        }
        match (rest, bytes.last_chunk()) {
            ([], _) => sum,
            // The last eight bytes, without the bytes that were added already.
            (_, Some(last)) => {
                sum.plus((u64::from_le_bytes(*last) >> (64 - 8 * rest.len())).to_le())
            }
            (_, None) => sum.plus(short(rest)),
        }
    }

    /// Adds a block in one chain of additions. Each addition also adds the carry of the previous
    /// one.
    #[inline]
    fn and_block(self, block: &[u8; 64]) -> Sum {
        let (words, _) = block.as_chunks::<8>();
        let (sum, carry) = words.iter().fold((self.0, false), |(sum, carry), word| {
            sum.carrying_add(u64::from_ne_bytes(*word), carry)
        });
        Sum(sum).plus(u64::from(carry))
    }

    /// Adds 64 bits with end-around carry.
    #[inline]
    fn plus(self, bits: u64) -> Sum {
        let (sum, carry) = self.0.overflowing_add(bits);
        // After a carry the sum is smaller than either operand, so adding one does not overflow.
        Sum(sum + u64::from(carry))
    }

    /// Adds one 16-bit number.
    #[inline]
    pub(crate) fn and_word(self, word: u16) -> Sum {
        self.plus(u64::from(word.to_be()))
    }

    /// Adds another sum, over bytes that start at an even offset.
    #[inline]
    pub(crate) fn and_sum(self, other: Sum) -> Sum {
        self.plus(other.0)
    }

    /// Adds another sum, over bytes that start at an odd offset.
    #[inline]
    pub(crate) fn and_sum_at_odd(self, other: Sum) -> Sum {
        self.plus(u64::from(other.fold().swap_bytes()))
    }

    /// The sum of the pseudo header of a transport packet of `length` bytes, over IPv4 (RFC 9293
    /// §3.1) or IPv6 (RFC 8200 §8.1). The same code serves both: an IPv4 address in 128 bits adds
    /// 0xffff, which is zero in one's complement.
    #[inline]
    pub(crate) fn pseudo_header(source: Ip, destination: Ip, protocol: u8, length: u16) -> Sum {
        let ([a, b], [c, d]) = (source.words(), destination.words());
        Sum::default()
            .plus(a)
            .plus(b)
            .plus(c)
            .plus(d)
            .and_word(u16::from(protocol))
            .and_word(length)
    }

    /// The value for the checksum field, in wire order. The field must have been zero in the sum.
    #[inline]
    pub(crate) fn field(self) -> [u8; 2] {
        (!self.fold()).to_ne_bytes()
    }

    /// The value that checksum offload expects in the field: the sum, not inverted, in wire order.
    #[inline]
    pub(crate) fn offload_field(self) -> [u8; 2] {
        self.fold().to_ne_bytes()
    }

    /// Whether the summed data is intact. The summed data must include the checksum field.
    #[inline]
    pub(crate) fn is_valid(self) -> bool {
        self.fold() == 0xffff
    }

    /// Folds the sum to 16 bits. The word is added to itself with its halves exchanged. So the
    /// upper half of the result is the sum of both halves, with the carry from the lower half.
    #[inline]
    fn fold(self) -> u16 {
        let half = (self.0.wrapping_add(self.0.rotate_left(32)) >> 32) as u32;
        (half.wrapping_add(half.rotate_left(16)) >> 16) as u16
    }
}

/// Reads fewer than eight bytes as a word, padded with zeros.
fn short(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::Sum;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;

    fn slow(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    proptest! {
        #[test]
        fn checksum_agrees_with_the_definition_at_any_length(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(Sum::of(&bytes).field(), slow(&bytes).to_be_bytes());
        }

        #[test]
        fn parts_of_a_checksum_may_be_summed_apart(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..300) {
            let cut = cut.min(bytes.len());
            let (front, back) = bytes.split_at(cut);
            let whole = if cut % 2 == 0 {
                Sum::of(front).and_sum(Sum::of(back))
            } else {
                Sum::of(front).and_sum_at_odd(Sum::of(back))
            };
            prop_assert_eq!(whole.field(), slow(&bytes).to_be_bytes());
        }

        #[test]
        fn a_filled_checksum_field_verifies(mut bytes in proptest::collection::vec(any::<u8>(), 2..100)) {
            bytes[0] = 0;
            bytes[1] = 0;
            let field = Sum::of(&bytes).field();
            bytes[..2].copy_from_slice(&field);
            prop_assert!(Sum::of(&bytes).is_valid());
        }
    }

    #[test]
    fn a_checksum_of_all_ones_does_not_overflow() {
        assert_eq!(Sum::of(&[0xff; 65_535]).field(), slow(&[0xff; 65_535]).to_be_bytes());
    }

    #[test]
    fn the_pseudo_headers_are_those_of_the_standards() {
        let (source, destination) =
            (Ipv4Addr::new(10, 0, 2, 15), Ipv4Addr::new(192, 168, 255, 254));
        let bytes = [10, 0, 2, 15, 192, 168, 255, 254, 0, 6, 4, 210];
        let sum = Sum::pseudo_header(source.into(), destination.into(), 6, 1234);
        assert_eq!(sum.field(), slow(&bytes).to_be_bytes());
        assert_eq!(sum.offload_field(), (!slow(&bytes)).to_be_bytes());

        let (source, destination): (Ipv6Addr, Ipv6Addr) =
            ("2001:db8:1:2:3:4:5:6".parse().unwrap(), "fe80::aabb:ccdd".parse().unwrap());
        let mut bytes = [0; 40];
        bytes[..16].copy_from_slice(&source.octets());
        bytes[16..32].copy_from_slice(&destination.octets());
        bytes[34..36].copy_from_slice(&1234u16.to_be_bytes());
        bytes[39] = 58;
        let sum = Sum::pseudo_header(source.into(), destination.into(), 58, 1234);
        assert_eq!(sum.field(), slow(&bytes).to_be_bytes());
    }
}
