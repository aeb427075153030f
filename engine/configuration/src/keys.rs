//! The tables of keys, one for each section of the file.
//!
//! The macro `keys!` makes two things of a table: the names of the keys, as a constant, and a
//! function that describes them. The parser of the section needs the names, and refuses every other
//! key. Only the reference needs the descriptions, so the image does not contain them.

use alloc::string::String;
use alloc::vec::Vec;

/// A key of the configuration, as the reference describes it.
pub(super) struct DescribedKey {
    /// Its name in the file.
    pub(super) name: &'static str,
    /// The type of its value.
    pub(super) form: &'static str,
    /// What holds without it.
    pub(super) default: String,
    /// The values that are valid.
    pub(super) range: String,
    /// A valid value, in TOML.
    pub(super) example: &'static str,
    /// What it is for.
    pub(super) meaning: String,
}

/// The keys of a section, as the reference describes them.
pub(super) struct DescribedSection {
    /// `[name]`, or `[[name]]` for a section that may occur several times. Empty for the keys
    /// outside of any section.
    pub(super) heading: &'static str,
    /// What the section is for. An empty line separates paragraphs.
    pub(super) about: String,
    /// Its keys, in the order of the reference.
    pub(super) keys: Vec<DescribedKey>,
}

impl DescribedSection {
    /// The heading without brackets.
    pub(super) fn name(&self) -> &'static str {
        self.heading.trim_matches(['[', ']'])
    }
}

/// The table of a section: the constant with the names of its keys and of the sections below it,
/// the function that describes it, its heading, the names of the sections below it, its purpose,
/// and its keys.
macro_rules! keys {
    (
        $names:ident, $described:ident, $heading:literal, [$($below:literal),*], $about:expr;
        $($name:literal {
            form: $form:expr,
            default: $default:expr,
            range: $range:expr,
            example: $example:expr,
            meaning: $meaning:expr,
        })*
    ) => {
        const $names: &[&str] = &[$($name,)* $($below,)*];

        pub(crate) fn $described() -> $crate::keys::DescribedSection {
            use alloc::string::ToString as _;
            let keys = alloc::vec![$($crate::keys::DescribedKey {
                name: $name,
                form: $form,
                default: $default.to_string(),
                range: $range.to_string(),
                example: $example,
                meaning: $meaning.to_string(),
            }),*];
            $crate::keys::DescribedSection { heading: $heading, about: $about.to_string(), keys }
        }
    };
}

pub(crate) use keys;
