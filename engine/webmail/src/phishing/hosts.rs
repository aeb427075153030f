//! Host names, and the detection of names that imitate others by look-alike characters.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use unicode_security::MixedScript;
use unicode_security::mixed_script::AugmentedScriptSet;

/// The longest host name (RFC 1035 section 2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// Last labels that count as file extensions, not as top-level domains.
const FILES: [&str; 13] =
    ["doc", "docx", "gif", "htm", "html", "jpeg", "jpg", "js", "pdf", "png", "txt", "xls", "xlsx"];

/// Characters of other scripts, and the Latin characters that they look like. A test compares them
/// with the table of UTS 39.
const LOOKALIKES: [(char, char); 30] = [
    ('а', 'a'),
    ('ԁ', 'd'),
    ('е', 'e'),
    ('һ', 'h'),
    ('і', 'i'),
    ('ј', 'j'),
    ('ӏ', 'l'),
    ('о', 'o'),
    ('р', 'p'),
    ('ԛ', 'q'),
    ('с', 'c'),
    ('ѕ', 's'),
    ('ԝ', 'w'),
    ('х', 'x'),
    ('у', 'y'),
    ('ѵ', 'v'),
    ('г', 'r'),
    ('п', 'n'),
    ('ո', 'n'),
    ('օ', 'o'),
    ('ս', 'u'),
    ('հ', 'h'),
    ('ց', 'g'),
    ('ο', 'o'),
    ('α', 'a'),
    ('ν', 'v'),
    ('ρ', 'p'),
    ('ι', 'i'),
    ('κ', 'k'),
    ('υ', 'u'),
];

/// A host name in lower case: alphanumeric characters, dots and hyphens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LinkHost(String);

impl LinkHost {
    /// The host name in a text. `None`: the text is not a host name.
    pub(super) fn of(text: &str) -> Option<LinkHost> {
        let name = text.trim_end_matches('.');
        let is_of_name =
            |character: char| character.is_alphanumeric() || character == '-' || character == '.';
        let is_host = (1..=HOST_BYTES_MAX).contains(&name.len()) && name.chars().all(is_of_name);
        is_host.then(|| LinkHost(name.to_lowercase()))
    }

    /// Whether a reader would recognize it as a host name, such as `example.org`, but not `x` or
    /// `notes.pdf`.
    pub(super) fn is_name(&self) -> bool {
        let labels = self.0.rsplit_once('.');
        labels.is_some_and(|(rest, last)| {
            let is_last = last.chars().count() >= 2
                && last.chars().all(|character| !character.is_ascii_digit() && character != '-');
            is_last && !FILES.contains(&last) && rest.split('.').all(|label| !label.is_empty())
        })
    }

    /// Whether the two hosts belong together: they are equal, or one is a subdomain of the other.
    pub(super) fn is_related_to(&self, other: &LinkHost) -> bool {
        let [own, other] =
            [&self.0, &other.0].map(|name| name.strip_prefix("www.").unwrap_or(name));
        let is_below =
            |low: &str, high: &str| low.strip_suffix(high).is_some_and(|rest| rest.ends_with('.'));
        own == other || is_below(own, other) || is_below(other, own)
    }

    /// The reason why a reader may confuse the name with another, as the end of a sentence.
    pub(super) fn warning(&self) -> Option<String> {
        let is_latin = self
            .0
            .rsplit('.')
            .next()
            .is_some_and(|last| last.is_ascii() && !last.starts_with("xn--"));
        self.0.split('.').find_map(|label| {
            let label =
                label.strip_prefix("xn--").map_or_else(|| Some(label.to_string()), decoded)?;
            if label.is_ascii() {
                return None;
            }
            if let Some(scripts) = mixed_scripts(&label) {
                return Some(format!("which mixes {scripts}"));
            }
            // Below a Latin top-level domain, no honest name consists only of look-alikes.
            let looks_like = skeleton(&label).filter(|_| is_latin)?;
            Some(format!("which looks like {looks_like} but is a different name"))
        })
    }
}

impl fmt::Display for LinkHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The scripts of a label, if they may not be mixed in one name (UTS 39 section 5.2, highly
/// restrictive). Latin may be mixed with Chinese, Japanese or Korean writing.
fn mixed_scripts(label: &str) -> Option<String> {
    let characters: String = label.chars().filter(|character| character.is_alphabetic()).collect();
    let mut others = AugmentedScriptSet::default();
    let other_characters =
        characters.chars().filter(|character| script(*character) != Some("Latin"));
    other_characters.for_each(|character| others.intersect_with(character.into()));
    if characters.is_single_script() || others.hanb || others.jpan || others.kore {
        return None;
    }
    let mut names = Vec::new();
    for name in characters.chars().filter_map(script) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names[..] {
        // The other characters belong to several scripts each.
        [] | [_] => Some("letters of several scripts".to_string()),
        _ => Some(format!("{} letters", names.join(" and "))),
    }
}

/// The name of a character's script. `None` for a character of several scripts.
fn script(character: char) -> Option<&'static str> {
    let set = AugmentedScriptSet::for_char(character);
    let is_of_one = !set.is_all() && set.base.len() == 1;
    set.base.iter().next().filter(|_| is_of_one).map(|script| script.full_name())
}

/// The Latin text that a label looks like, if it has no Latin characters and each of its characters
/// has a look-alike.
fn skeleton(label: &str) -> Option<String> {
    let latin = |character: char| match LOOKALIKES.iter().find(|(other, _)| *other == character) {
        Some((_, latin)) => Some(*latin),
        None => Some(character).filter(|character| character.is_ascii_digit() || *character == '-'),
    };
    label.chars().map(latin).collect()
}

/// Decodes a label after `xn--` (RFC 3492 section 6.2). `None`: the label is invalid.
fn decoded(label: &str) -> Option<String> {
    let (basic, rest) = label.rsplit_once('-').unwrap_or(("", label));
    let mut out: Vec<char> = basic.chars().collect();
    let (mut number, mut index, mut bias) = (128_u32, 0_u32, 72_u32);
    let mut digits = rest.bytes();
    while digits.len() > 0 {
        let (before, mut weight) = (index, 1_u32);
        for place in (36_u32..).step_by(36) {
            let digit = match digits.next()? {
                byte @ b'a'..=b'z' => u32::from(byte - b'a'),
                byte @ b'0'..=b'9' => u32::from(byte - b'0') + 26,
                _ => return None,
            };
            index = index.checked_add(digit.checked_mul(weight)?)?;
            let threshold = place.saturating_sub(bias).clamp(1, 26);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(36 - threshold)?;
        }
        let length = out.len() as u32 + 1;
        bias = adapted(index - before, length, before == 0);
        number = number.checked_add(index / length)?;
        index %= length;
        out.insert(index as usize, char::from_u32(number)?);
        index += 1;
    }
    Some(out.into_iter().collect())
}

/// The bias adaptation of RFC 3492 section 6.1.
fn adapted(delta: u32, length: u32, is_first: bool) -> u32 {
    let mut delta = delta / if is_first { 700 } else { 2 };
    delta += delta / length;
    let mut bias = 0;
    while delta > 455 {
        delta /= 35;
        bias += 36;
    }
    bias + 36 * delta / (delta + 38)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalikes_are_those_of_uts_39_except_for_two() {
        let skeleton = |character: char| {
            unicode_security::skeleton(&character.to_string()).collect::<String>()
        };
        let differ: Vec<(char, char)> = LOOKALIKES
            .into_iter()
            .filter(|(other, latin)| skeleton(*other) != skeleton(*latin))
            .collect();
        assert_eq!(differ, [('п', 'n'), ('κ', 'k')]);
    }
}
