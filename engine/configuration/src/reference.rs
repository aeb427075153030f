//! Generates the reference of the configuration, docs/configuration.md, from the tables of keys.

use alloc::format;
use alloc::string::String;

use super::keys::{DescribedKey, DescribedSection};
use super::{abuse, certificates, disk, filter, limits, network, relay, users, web};

/// The width at which text is wrapped, in characters.
const COLUMNS: usize = 100;

const INTRODUCTION: &str = "\
# Configuration

<!-- Generated from the tables of keys in engine/configuration. Change them, not this file. -->

The configuration of a machine is `data/barepost.toml`. It is made at the first run and read at
every start. A wrong file is refused before anything boots: the error names the file, the line, what
is wrong there and what was expected. An unknown key is an error, so a misspelt key is never
ignored. The file has at most 1 MiB.

The format is [TOML](https://toml.io). Some strings have a form of their own:

- A *duration* is a number with `ms`, `s`, `m` or `h`, such as `\"500ms\"` or `\"5m\"`.
- A *size* is a number with `M`, `G` or `T`, such as `\"500M\"` or `\"2G\"`.
- A *prefix* is a range of addresses: `\"10.0.2.0/24\"`, or for one address `\"10.0.2.2/32\"`.
- A *domain name* or *host name* has at least two labels of letters, digits and hyphens.
- A *file name* or *folder name* is relative to the folder of the configuration.

[accounts.md](accounts.md) explains passwords, quotas, forwarding and sending limits,
[sending.md](sending.md) mail to other servers, and [running.md](running.md) everything that is set
on the command line.
";

/// The keys that the example leaves out, as section and name. Each excludes another key.
const NOT_IN_EXAMPLE: &[(&str, &str)] = &[("user", "password_hash"), ("relay.domain", "direct")];

/// The text of docs/configuration.md: one entry for each key, and an example with all of them.
pub fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    for section in &sections() {
        describe(section, &mut page);
    }
    page.push_str("\n## A file with all sections\n\n```toml\n");
    page.push_str(&example(NOT_IN_EXAMPLE));
    page.push_str("```\n");
    page
}

/// All sections. The first one has the keys outside of any section.
pub(super) fn sections() -> [DescribedSection; 12] {
    [
        super::described(),
        network::described(),
        users::described(),
        limits::described(),
        relay::described(),
        relay::domain_described(),
        network::access_described(),
        abuse::described(),
        filter::described(),
        web::described(),
        certificates::described(),
        disk::described(),
    ]
}

/// A configuration with the examples of all keys except `absent`.
pub(super) fn example(absent: &[(&str, &str)]) -> String {
    let mut example = String::new();
    for section in &sections() {
        if !section.heading.is_empty() {
            example.push_str(&format!("\n{}\n", section.heading));
        }
        for DescribedKey { name, example: value, .. } in &section.keys {
            if !absent.contains(&(section.name(), name)) {
                example.push_str(&format!("{name} = {value}\n"));
            }
        }
    }
    example
}

fn describe(section: &DescribedSection, page: &mut String) {
    match section.heading {
        "" => page.push_str("\n## The top of the file\n"),
        heading => page.push_str(&format!("\n## `{heading}`\n")),
    }
    for paragraph in section.about.split("\n\n") {
        page.push('\n');
        wrap(paragraph, page);
    }
    for DescribedKey { name, form, default, range, example, meaning } in &section.keys {
        let separator = if section.heading.is_empty() { "" } else { "." };
        page.push_str(&format!("\n### `{}{separator}{name}`\n\n", section.name()));
        wrap(meaning, page);
        page.push('\n');
        wrap(&format!("- Type: {form}"), page);
        wrap(&format!("- Default: {default}"), page);
        wrap(&format!("- Range: {range}"), page);
        page.push_str(&format!("- Example: `{name} = {example}`\n"));
    }
}

/// Appends `text` in lines of at most [`COLUMNS`] characters. In an item of a list, further lines
/// are indented.
fn wrap(text: &str, page: &mut String) {
    let indent = if text.starts_with("- ") { "  " } else { "" };
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > COLUMNS {
            page.push('\n');
            page.push_str(indent);
            column = indent.len();
        } else if column > 0 {
            page.push(' ');
            column += 1;
        }
        page.push_str(word);
        column += width;
    }
    page.push('\n');
}
