//! The tables of keys, one for each section of the file.
//!
//! The macro `keys!` makes a constant and a function from a table. The constant has the names of
//! the keys: the parser of the section needs them, and refuses every other key. The function
//! describes the keys. Only the reference calls it, so the image does not contain the descriptions.

use alloc::string::String;
use alloc::vec::Vec;

/// A key of the configuration, as the reference describes it.
pub(super) struct DescribedKey {
    /// The name of the key in the file.
    pub(super) name: &'static str,
    /// The type of the key's value.
    pub(super) form: &'static str,
    /// The default: the value or behaviour without the key.
    pub(super) default: String,
    /// The values that are valid.
    pub(super) range: String,
    /// A valid value, in TOML.
    pub(super) example: &'static str,
    /// The purpose of the key.
    pub(super) meaning: String,
}

/// The keys of a section, as the reference describes them.
pub(super) struct DescribedSection {
    /// `[name]`, or `[[name]]` for a section that may occur several times. Empty for the keys
    /// outside of any section.
    pub(super) heading: &'static str,
    /// The purpose of the section. An empty line separates paragraphs.
    pub(super) about: String,
    /// The keys of the section, in the order of the reference.
    pub(super) keys: Vec<DescribedKey>,
}

impl DescribedSection {
    /// The heading without brackets.
    pub(super) fn name(&self) -> &'static str {
        self.heading.trim_matches(['[', ']'])
    }
}

/// Defines the table of a section. The arguments are: the name of the constant, the name of the
/// function, the heading of the section, the names of its subsections, its purpose, and its keys.
/// The constant also has the names of the subsections.
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
