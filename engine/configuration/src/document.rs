//! The TOML document as a tree. Every node knows its place, so that an error can point at it.
//!
//! Our own code reads the tree, and no deserializer does. So an error about a value of well-formed
//! TOML, such as an address in a foreign domain, can name its line. An error about a misspelt key
//! can name the nearest known key.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigurationError;
use super::values::Value;

/// A well-formed TOML document.
pub(super) struct Document<'t> {
    text: &'t str,
    table: Spanned<DeTable<'t>>,
}

impl<'t> Document<'t> {
    /// Parses the text. Errors: the first error of the TOML parser.
    pub(super) fn parse(text: &'t str) -> Result<Document<'t>, ConfigurationError> {
        let table = DeTable::parse(text)
            .map_err(|error| syntax_error(text, error.message(), error.span()))?;
        Ok(Document { text, table })
    }

    /// The keys outside of any section.
    pub(super) fn root(&self) -> UncheckedSection<'_, 't> {
        UncheckedSection {
            text: self.text,
            at: self.text.len(),
            name: "the file",
            table: self.table.get_ref(),
        }
    }
}

/// Splits the parser's message, which is one line of the form `WHAT, expected EXPECTED`.
fn syntax_error(text: &str, message: &str, span: Option<Range<usize>>) -> ConfigurationError {
    let at = span.map_or(text.len(), |span| span.start);
    let (what, expected) =
        message.split_once(", expected ").unwrap_or((message, "well-formed TOML"));
    ConfigurationError::new(text, at, what, expected)
}

/// A table of the document, with keys that are not checked yet: the root or a `[section]`.
pub(super) struct UncheckedSection<'a, 't> {
    text: &'t str,
    /// The place that an error about the whole section points to.
    at: usize,
    name: &'a str,
    table: &'a DeTable<'t>,
}

/// A table without unknown keys. Only known keys can be read.
pub(super) struct Section<'a, 't> {
    table: UncheckedSection<'a, 't>,
    known: &'static [&'static str],
}

impl<'a, 't> UncheckedSection<'a, 't> {
    /// Checks the keys of the table. Errors: a key is not in `known`. The error names the nearest
    /// known key.
    pub(super) fn section(
        self,
        known: &'static [&'static str],
    ) -> Result<Section<'a, 't>, ConfigurationError> {
        for (key, _) in self.keys_in_order() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let expected = match nearest(name, known) {
                Some(key) => format!("`{key}`"),
                None => format!("one of {}", quoted(known)),
            };
            let what = format_args!("`{name}` is not a valid key in {}", self.name);
            return Err(ConfigurationError::new(self.text, key.span().start, what, expected));
        }
        Ok(Section { table: self, known })
    }

    /// The keys in the order of the file, so that the first error in the file is reported. The
    /// parser sorts keys by name.
    fn keys_in_order(
        &self,
    ) -> Vec<(&'a Spanned<alloc::borrow::Cow<'t, str>>, &'a Spanned<DeValue<'t>>)> {
        let mut keys: Vec<_> = self.table.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        keys
    }
}

impl<'a, 't> Section<'a, 't> {
    /// The value of `key`, if it is present.
    pub(super) fn optional(&self, key: &str) -> Option<Item<'a, 't>> {
        assert!(
            self.known.contains(&key),
            "every key that is read must be in the table of its section"
        );
        let UncheckedSection { text, table, .. } = self.table;
        table.get(key).map(|value| Item { text, value })
    }

    /// The value of `key`. Errors: `key` is missing.
    pub(super) fn required(
        &self,
        key: &str,
        expected: &str,
    ) -> Result<Item<'a, 't>, ConfigurationError> {
        self.optional(key).ok_or_else(|| {
            self.error(format_args!("`{key}` is missing in {}", self.table.name), expected)
        })
    }

    /// The table `[name]`, if it is present. Errors: `name` is not a table.
    pub(super) fn table(
        &self,
        name: &'a str,
    ) -> Result<Option<UncheckedSection<'a, 't>>, ConfigurationError> {
        let Some(item) = self.optional(name) else { return Ok(None) };
        item.table(name, &format!("a section `[{name}]`")).map(Some)
    }

    /// The tables `[[name]]`. Errors: `name` is not a list of tables, or there are more than
    /// `most`.
    pub(super) fn tables(
        &self,
        name: &'a str,
        most: usize,
    ) -> Result<Vec<UncheckedSection<'a, 't>>, ConfigurationError> {
        let Some(item) = self.optional(name) else { return Ok(Vec::new()) };
        let expected = format!("sections `[[{name}]]`");
        item.list(most, &expected)?.iter().map(|item| item.table(name, &expected)).collect()
    }

    /// An error about the whole section.
    pub(super) fn error(
        &self,
        what: impl fmt::Display,
        expected: impl ToString,
    ) -> ConfigurationError {
        ConfigurationError::new(self.table.text, self.table.at, what, expected)
    }
}

/// One value of the document.
#[derive(Clone, Copy)]
pub(super) struct Item<'a, 't> {
    text: &'t str,
    value: &'a Spanned<DeValue<'t>>,
}

impl<'a, 't> Item<'a, 't> {
    /// Parses the value from a string. Errors: not a string, or a malformed value.
    pub(super) fn parsed<T: Value>(&self) -> Result<T, ConfigurationError> {
        let text = self.string(T::FORM)?;
        T::parse(text)
            .map_err(|what| self.error(format_args!("`{}`: {what}", shortened(text)), T::FORM))
    }

    /// The value as a string. Errors: not a string.
    pub(super) fn string(&self, expected: &str) -> Result<&'a str, ConfigurationError> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong_type(expected))
    }

    /// The value as a decimal number without a sign, if it is one.
    pub(super) fn integer(&self) -> Option<u64> {
        self.value
            .get_ref()
            .as_integer()
            .filter(|number| number.radix() == 10)?
            .as_str()
            .parse()
            .ok()
    }

    /// Whether the value is the string `word`.
    pub(super) fn is(&self, word: &str) -> bool {
        self.value.get_ref().as_str() == Some(word)
    }

    /// The value as a boolean. Errors: not a boolean.
    pub(super) fn boolean(&self) -> Result<bool, ConfigurationError> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    /// The value as a whole number. Errors: not a number from 1 to 65,535.
    pub(super) fn count(&self) -> Result<u16, ConfigurationError> {
        const EXPECTED: &str = "a number from 1 to 65535";
        let number = self.value.get_ref().as_integer().ok_or_else(|| self.wrong_type(EXPECTED))?;
        let count =
            u16::from_str_radix(number.as_str(), number.radix()).ok().filter(|count| *count > 0);
        count.ok_or_else(|| self.error(format_args!("{number} is out of range"), EXPECTED))
    }

    /// The items of a list. Errors: not a list, or more than `most` items.
    pub(super) fn list(
        &self,
        most: usize,
        expected: &str,
    ) -> Result<Vec<Item<'a, 't>>, ConfigurationError> {
        let array = self.value.get_ref().as_array().ok_or_else(|| self.wrong_type(expected))?;
        let items: Vec<_> = array.iter().map(|value| Item { text: self.text, value }).collect();
        match items.get(most) {
            None => Ok(items),
            Some(beyond) => {
                Err(beyond.error("the list is too long", format_args!("at most {most}")))
            }
        }
    }

    /// The items of a list, or the value itself as the only one. Errors: more than `most` items.
    pub(super) fn one_or_several(
        &self,
        most: usize,
        expected: &str,
    ) -> Result<Vec<Item<'a, 't>>, ConfigurationError> {
        if self.value.get_ref().is_array() {
            self.list(most, expected)
        } else {
            Ok(Vec::from([*self]))
        }
    }

    /// The line in which the value begins, counted from 1.
    pub(super) fn line(&self) -> usize {
        self.error("", "").line
    }

    /// An error at this value.
    pub(super) fn error(
        &self,
        what: impl fmt::Display,
        expected: impl ToString,
    ) -> ConfigurationError {
        ConfigurationError::new(self.text, self.value.span().start, what, expected)
    }

    fn table(
        &self,
        name: &'a str,
        expected: &str,
    ) -> Result<UncheckedSection<'a, 't>, ConfigurationError> {
        let table = self.value.get_ref().as_table().ok_or_else(|| self.wrong_type(expected))?;
        Ok(UncheckedSection { text: self.text, at: self.value.span().start, name, table })
    }

    fn wrong_type(&self, expected: &str) -> ConfigurationError {
        self.error(
            format_args!("the value has the wrong type, {}", self.value.get_ref().type_str()),
            expected,
        )
    }
}

/// The known key that `name` is most likely a misspelling of: at most a third of its characters
/// differ.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let (distance, key) = known.iter().map(|key| (edits(name, key), *key)).min()?;
    (distance <= name.chars().count().div_ceil(3)).then_some(key)
}

/// The number of characters that must be added, removed or replaced to turn `from` into `to`
/// (Levenshtein distance).
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (index, a) in from.chars().enumerate() {
        let mut diagonal = index;
        let mut left = index.saturating_add(1);
        for (above, b) in row.iter_mut().skip(1).zip(to.chars()) {
            let replaced = diagonal.saturating_add(usize::from(a != b));
            diagonal = *above;
            left = replaced.min(left.saturating_add(1)).min(above.saturating_add(1));
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = index.saturating_add(1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The start of a text, for a quotation in an error.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
