//! The Huffman code of HPACK: RFC 7541 section 5.2 and appendix B.
//!
//! The code is canonical: among codes of the same length, a smaller symbol has a smaller code. If a
//! shorter code is filled up with bits to the length of a longer code, the longer code is still
//! larger. So the lengths define all codes.
//!
//! Nearly all common symbols have codes of at most 8 bits, which the decoder finds in a table. For
//! other symbols the decoder tries one length after another.

use super::HpackError;

/// The longest code, in bits.
const BITS_MAX: usize = 30;
/// The number of bits that the table looks up at once.
const QUICK_BITS: u32 = 8;
/// The end symbol, which stands for no byte. Only its first bits may occur, as padding.
const END: usize = 256;

/// The length of the code of each symbol, in bits.
const LENGTHS: [u8; END + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The codes of one length.
#[derive(Clone, Copy)]
struct Length {
    /// The smallest code of this length.
    first: u32,
    /// The number of codes of this length.
    count: u32,
    /// The number of symbols with shorter codes.
    before: u32,
}

/// The tables that are computed from the lengths.
struct Code {
    lengths: [Length; BITS_MAX + 1],
    /// All symbols in the order of their codes.
    symbols: [u16; END + 1],
    /// For each 8 bits, the symbol and the length of the code at their start. The length is 0 if
    /// the code is longer.
    quick: [(u8, u8); 1 << QUICK_BITS],
}

static CODE: Code = Code::new();

impl Code {
    #[expect(
        clippy::indexing_slicing,
        reason = "the compiler runs this function, and would report an index outside of an array"
    )]
    const fn new() -> Code {
        let mut lengths = [Length { first: 0, count: 0, before: 0 }; BITS_MAX + 1];
        let mut symbols = [0; END + 1];
        let mut quick = [(0, 0); 1 << QUICK_BITS];
        let (mut code, mut before, mut bits) = (0u32, 0, 1);
        while bits <= BITS_MAX {
            code <<= 1;
            lengths[bits] = Length { first: code, count: 0, before: before as u32 };
            let mut symbol = 0;
            while symbol <= END {
                if LENGTHS[symbol] as usize == bits {
                    symbols[before] = symbol as u16;
                    let mut beginning = code << QUICK_BITS >> bits;
                    let end = (code + 1) << QUICK_BITS >> bits;
                    while bits <= QUICK_BITS as usize && beginning < end {
                        quick[beginning as usize] = (symbol as u8, bits as u8);
                        beginning += 1;
                    }
                    lengths[bits].count += 1;
                    code += 1;
                    before += 1;
                }
                symbol += 1;
            }
            bits += 1;
        }
        assert!(code == 1 << BITS_MAX, "every sequence of bits begins with a code");
        Code { lengths, symbols, quick }
    }

    /// The symbol with the code at the start of `window`, and the length of the code in bits.
    #[inline]
    fn find(&self, window: u32) -> Option<(usize, u32)> {
        match self.quick.get((window >> (32 - QUICK_BITS)) as usize) {
            Some((symbol, bits)) if *bits > 0 => Some((usize::from(*symbol), u32::from(*bits))),
            _ => self.find_long(window),
        }
    }

    fn find_long(&self, window: u32) -> Option<(usize, u32)> {
        (QUICK_BITS + 1..=BITS_MAX as u32).find_map(|bits| {
            let length = self.lengths.get(bits as usize)?;
            let nth = (window >> (32 - bits))
                .checked_sub(length.first)
                .filter(|nth| *nth < length.count)?;
            Some((usize::from(*self.symbols.get((length.before + nth) as usize)?), bits))
        })
    }
}

/// Decodes a string, byte by byte.
///
/// Errors: the string contains the end symbol, or its padding is not the start of the end symbol.
pub(crate) fn decode(coded: &[u8], mut put: impl FnMut(u8)) -> Result<(), HpackError> {
    // The highest `unread` bits of `window` were taken from the string and are not decoded yet.
    let (mut window, mut unread) = (0u64, 0);
    let mut rest = coded.iter();
    loop {
        while unread <= 56
            && let Some(byte) = rest.next()
        {
            window |= u64::from(*byte) << (56 - unread);
            unread += 8;
        }
        match CODE.find((window >> 32) as u32) {
            Some((symbol, bits)) if bits <= unread => {
                put(u8::try_from(symbol).map_err(|_| HpackError)?);
                window <<= bits;
                unread -= bits;
            }
            _ => break,
        }
    }
    let is_padding =
        unread < 8 && window >> 32 == (u64::from(u32::MAX) << (32 - unread)) & u64::from(u32::MAX);
    is_padding.then_some(()).ok_or(HpackError)
}

/// The code of a symbol as binary digits, computed from the lengths of all smaller codes.
#[cfg(test)]
pub(crate) fn bits_of(symbol: usize) -> std::string::String {
    let own = (LENGTHS[symbol], symbol);
    let place = |other: usize| (LENGTHS[other], other);
    let code: u64 = (0..=END)
        .filter(|other| place(*other) < own)
        .map(|other| 1u64 << (u64::from(own.0) - u64::from(LENGTHS[other])))
        .sum();
    std::format!("{code:0width$b}", width = usize::from(own.0))
}
