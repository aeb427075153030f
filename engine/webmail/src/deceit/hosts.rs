//! Hosts, and whether their letters are what they look like.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The longest name of a host (RFC 1035 section 2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// What ends names of files, and no names of hosts that anybody writes.
const FILES: [&str; 13] =
    ["doc", "docx", "gif", "htm", "html", "jpeg", "jpg", "js", "pdf", "png", "txt", "xls", "xlsx"];

/// The alphabets that names are written in, by blocks of Unicode.
const ALPHABETS: [(&str, &[(u32, u32)]); 14] = [
    ("Latin", &[(0x41, 0x5a), (0x61, 0x7a), (0xaa, 0xaa), (0xba, 0xba), (0xc0, 0x24f), (0x1e00, 0x1eff)]),
    ("Chinese", &[(0x3005, 0x3007), (0x3400, 0x4dbf), (0x4e00, 0x9fff), (0x2_0000, 0x3_134f)]),
    ("Hiragana", &[(0x3041, 0x309f)]),
    ("Katakana", &[(0x30a0, 0x30ff)]),
    ("Bopomofo", &[(0x3100, 0x312f)]),
    ("Korean", &[(0x1100, 0x11ff), (0x3130, 0x318f), (0xac00, 0xd7af)]),
    ("Greek", &[(0x370, 0x3ff), (0x1f00, 0x1fff)]),
    ("Cyrillic", &[(0x400, 0x52f), (0x1c80, 0x1c8f), (0xa640, 0xa69f)]),
    ("Armenian", &[(0x530, 0x58f)]),
    ("Hebrew", &[(0x590, 0x5ff)]),
    ("Arabic", &[(0x600, 0x6ff), (0x750, 0x77f), (0x8a0, 0x8ff)]),
    ("Indic", &[(0x900, 0xdff)]),
    ("Thai", &[(0xe00, 0xe7f)]),
    ("Georgian", &[(0x10a0, 0x10ff), (0x1c90, 0x1cbf)]),
];

/// Alphabets that one name may be written in together (UTS 39 section 5.2, highly restrictive): a bit each, in the order of [`ALPHABETS`].
const TOGETHER: [u32; 3] = [0b00_1111, 0b01_0011, 0b10_0011];

/// Letters of other alphabets that nobody tells from these.
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

/// The name of a host in small letters, as it is written: letters, digits, dots and hyphens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Host(String);

impl Host {
    /// `None`: it is none.
    pub(super) fn of(text: &str) -> Option<Host> {
        let name = text.trim_end_matches('.');
        let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '.';
        let is_host = (1..=HOST_BYTES_MAX).contains(&name.len()) && name.chars().all(is_of_name);
        is_host.then(|| Host(name.to_lowercase()))
    }

    /// Whether people would take it for the name of a host: `example.org`, and not `x` or `notes.pdf`.
    pub(super) fn is_name(&self) -> bool {
        let labels = self.0.rsplit_once('.');
        labels.is_some_and(|(rest, last)| {
            let is_last =
                last.chars().count() >= 2 && last.chars().all(|letter| !letter.is_ascii_digit() && letter != '-');
            is_last && !FILES.contains(&last) && rest.split('.').all(|label| !label.is_empty())
        })
    }

    /// Whether the two belong together: they are one, or one is below the other.
    pub(super) fn is_kin(&self, other: &Host) -> bool {
        let [own, other] = [&self.0, &other.0].map(|name| name.strip_prefix("www.").unwrap_or(name));
        let is_below = |low: &str, high: &str| low.strip_suffix(high).is_some_and(|rest| rest.ends_with('.'));
        own == other || is_below(own, other) || is_below(other, own)
    }

    /// Why it may be taken for another one.
    pub(super) fn doubt(&self) -> Option<String> {
        let is_latin = self.0.rsplit('.').next().is_some_and(|last| last.is_ascii() && !last.starts_with("xn--"));
        self.0.split('.').find_map(|label| {
            let label = label.strip_prefix("xn--").map_or_else(|| Some(label.to_string()), decoded)?;
            let alphabets = alphabets(&label);
            let is_one = alphabets.count_ones() <= 1 || TOGETHER.iter().any(|together| alphabets & !together == 0);
            if !is_one {
                let names = ALPHABETS.iter().enumerate().filter(|(bit, _)| alphabets >> bit & 1 == 1);
                let names: Vec<&str> = names.map(|(_, (name, _))| *name).collect();
                return Some(format!("whose name mixes {} letters", names.join(" and ")));
            }
            // Below an end that is Latin nobody writes a whole name in letters that look like others.
            let looks_like = skeleton(&label).filter(|_| is_latin)?;
            Some(format!("whose name is not {looks_like} but looks like it"))
        })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The alphabets that the letters are of, a bit each.
fn alphabets(label: &str) -> u32 {
    let of = |letter: char| {
        let number = u32::from(letter);
        let is_in = |blocks: &[(u32, u32)]| blocks.iter().any(|(first, last)| (*first..=*last).contains(&number));
        ALPHABETS.iter().position(|(_, blocks)| is_in(blocks)).map_or(0, |bit| 1 << bit)
    };
    label.chars().filter(|letter| letter.is_alphabetic()).fold(0, |all, letter| all | of(letter))
}

/// The Latin letters that it looks like, if it has none and each of its letters looks like one.
fn skeleton(label: &str) -> Option<String> {
    if label.is_ascii() {
        return None;
    }
    let latin = |letter: char| match LOOKALIKES.iter().find(|(other, _)| *other == letter) {
        Some((_, latin)) => Some(*latin),
        None => Some(letter).filter(|letter| letter.is_ascii_digit() || *letter == '-'),
    };
    label.chars().map(latin).collect()
}

/// What a label stands for behind `xn--` (RFC 3492 section 6.2). `None`: for nothing.
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

/// RFC 3492 section 6.1.
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
