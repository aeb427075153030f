//! Domain names with macros, the syntax in policies (RFC 7208 §7.1).

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A `domain-spec` or a `macro-string`, in pieces.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Specification(pub(crate) Vec<MacroPiece>);

#[derive(PartialEq, Eq, Debug)]
pub(crate) enum MacroPiece {
    Literal(u8),
    Macro(Macro),
}

/// `%{` name transformers delimiters `}` (RFC 7208 section 7.1).
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Macro {
    pub(crate) macro_letter: MacroLetter,
    /// Whether characters that are not allowed in URLs are escaped. This is so if the macro's name
    /// is in upper case.
    pub(crate) is_escaped: bool,
    /// The number of labels that are kept, from the right. `None`: all.
    pub(crate) labels: Option<usize>,
    pub(crate) is_reversed: bool,
    /// The characters that separate labels.
    pub(crate) delimiters: Box<[u8]>,
}

/// The name of a macro, which selects its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MacroLetter {
    Sender,
    LocalPart,
    SenderDomain,
    Domain,
    Address,
    ValidatedName,
    Version,
    Hello,
    /// `c`, `r` and `t`, which are allowed only in explanations.
    OfExplanations,
}

impl MacroLetter {
    fn named(byte: u8) -> Option<MacroLetter> {
        Some(match byte.to_ascii_lowercase() {
            b's' => MacroLetter::Sender,
            b'l' => MacroLetter::LocalPart,
            b'o' => MacroLetter::SenderDomain,
            b'd' => MacroLetter::Domain,
            b'i' => MacroLetter::Address,
            b'p' => MacroLetter::ValidatedName,
            b'v' => MacroLetter::Version,
            b'h' => MacroLetter::Hello,
            b'c' | b'r' | b't' => MacroLetter::OfExplanations,
            _ => return None,
        })
    }
}

impl Specification {
    /// Reads a `macro-string`. `None`: it is not valid.
    pub(crate) fn of_text(mut text: &[u8]) -> Option<Specification> {
        let mut pieces = Vec::new();
        while let Some((&byte, rest)) = text.split_first() {
            text = rest;
            if byte != b'%' {
                pieces.push(MacroPiece::Literal(
                    Some(byte).filter(|byte| matches!(byte, 0x21..=0x7e))?,
                ));
                continue;
            }
            let (&kind, rest) = text.split_first()?;
            text = rest;
            match kind {
                b'%' => pieces.push(MacroPiece::Literal(b'%')),
                b'_' => pieces.push(MacroPiece::Literal(b' ')),
                b'-' => pieces.extend(b"%20".map(MacroPiece::Literal)),
                b'{' => {
                    let end = text.iter().position(|byte| *byte == b'}')?;
                    let (inside, rest) = text.split_at_checked(end)?;
                    pieces.push(MacroPiece::Macro(Macro::read(inside)?));
                    text = rest.get(1..)?;
                }
                _ => return None,
            }
        }
        Some(Specification(pieces))
    }

    /// Reads a `domain-spec`: it ends with a macro, or with the label of a top-level domain.
    /// `None`: it is not valid.
    pub(crate) fn of_domain(text: &[u8]) -> Option<Specification> {
        let read = Specification::of_text(text)?;
        let has_letter_of_explanations = read.0.iter().any(|piece| {
            matches!(
                piece,
                MacroPiece::Macro(Macro { macro_letter: MacroLetter::OfExplanations, .. })
            )
        });
        let ends_well = match read.0.last()? {
            MacroPiece::Macro(_) => true,
            MacroPiece::Literal(_) => ends_with_top_label(text),
        };
        (ends_well && !has_letter_of_explanations).then_some(read)
    }
}

/// Whether `text` ends with the label of a top-level domain. Such a label has an alphabetic
/// character or a hyphen, and neither begins nor ends with a hyphen. A dot precedes it, and a dot
/// may follow it.
fn ends_with_top_label(text: &[u8]) -> bool {
    let text = text.strip_suffix(b".").unwrap_or(text);
    let Some(dot) = text.iter().rposition(|byte| *byte == b'.') else { return false };
    let label = text.get(dot + 1..).unwrap_or_default();
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    is_edge(label.first())
        && is_edge(label.last())
        && label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && !label.iter().all(u8::is_ascii_digit)
}

impl Macro {
    fn read(inside: &[u8]) -> Option<Macro> {
        let (&byte, rest) = inside.split_first()?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = rest.split_at_checked(digits)?;
        let labels = match number {
            [] => None,
            // A number larger than any count of labels means all labels.
            digits => Some(digits.iter().fold(0_usize, |sum, digit| {
                sum.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
            })),
        };
        let (is_reversed, delimiters) = match rest.split_first() {
            Some((b'r' | b'R', delimiters)) => (true, delimiters),
            _ => (false, rest),
        };
        let is_sound = labels != Some(0) && delimiters.iter().all(|byte| b".-+,/_=".contains(byte));
        let delimiters = if delimiters.is_empty() { b"." } else { delimiters };
        is_sound.then_some(Macro {
            macro_letter: MacroLetter::named(byte)?,
            is_escaped: byte.is_ascii_uppercase(),
            labels,
            is_reversed,
            delimiters: delimiters.into(),
        })
    }
}
