//! The characters that are shown in texts of lists.

use alloc::string::String;

/// Whether a character is visible and has no effect on its neighbours. Advertisements begin their
/// texts with invisible characters. Some senders reverse the order of characters in names.
pub(crate) fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180e}'
        )
        && !matches!(c, '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        && !matches!(c, '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The visible characters, at most `most`, with one space between words.
pub(crate) fn one_line(characters: impl Iterator<Item = char>, most: usize) -> String {
    let mut out = String::new();
    let (mut length, mut has_gap) = (0, false);
    for character in characters {
        if character.is_whitespace() {
            has_gap = true;
        } else if is_shown(character) {
            let is_spaced = core::mem::take(&mut has_gap) && length > 0;
            length += 1 + usize::from(is_spaced);
            if length > most {
                break;
            }
            out.extend(is_spaced.then_some(' '));
            out.push(character);
        }
    }
    out
}
