//! The picture of the floors, generated from the table in ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::manifest::{PAGE, Row, floor_table};
use super::tree::Tree;
use super::violation::Violation;

/// The path of the picture.
pub(super) const PICTURE: &str = "docs/figures/floors.svg";
/// The path below `target` to which the rule writes the correct picture.
pub(super) const DRAWN: &str = "test/floors.svg";

/// The number of crates in a row, and the size of their boxes.
const COLUMNS: usize = 4;
const BOX_WIDTH: usize = 216;
const BOX_HEIGHT: usize = 42;
const GAP: usize = 6;
const LEFT: usize = 74;
const WIDTH: usize = LEFT + COLUMNS * (BOX_WIDTH + GAP) + GAP;
/// The longest phrase that fits into a box, in characters.
const PHRASE_CHARACTERS: usize = 31;

const STYLE: &str = "text{font-family:system-ui,sans-serif;font-size:13px}\
                     .floor{fill:#f4f1ea;stroke:#8a8172}.crate{fill:#fff;stroke:#5b6470}.name{fill:#1d2733;font-weight:600}\
                     .what{fill:#49525c;font-size:12px}.level{fill:#6b6355}\
                     @media (prefers-color-scheme: dark){.floor{fill:#23211d;stroke:#77705f}\
                     .crate{fill:#171b20;stroke:#8d97a3}.name{fill:#eef2f6}.what{fill:#b4bdc7}.level{fill:#a79f8e}}";

/// Rule: the picture matches the table, and each phrase fits into its box.
pub(super) fn drawn(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (folder, Row { phrase, .. }) in floor_table(tree) {
        if phrase.is_empty() || phrase.chars().count() > PHRASE_CHARACTERS {
            let what = format_args!(
                "{folder} needs a phrase of 1 to {PHRASE_CHARACTERS} characters before a colon"
            );
            found.push(Violation::of_file(PAGE, what));
        }
    }
    if tree.text(PICTURE) != Some(&picture(tree)) {
        let what = format_args!(
            "this is not the picture of the table in {PAGE}; copy target/{DRAWN} over it"
        );
        found.push(Violation::of_file(PICTURE, what));
    }
    found
}

/// The floors as a picture, the highest at the top, with the crates of each.
pub(super) fn picture(tree: &Tree) -> String {
    let mut floors: BTreeMap<u32, Vec<(&str, &str)>> = BTreeMap::new();
    for (folder, Row { floor, phrase }) in floor_table(tree) {
        floors.entry(floor).or_default().push((folder, phrase));
    }
    let (mut body, mut top) = (String::new(), GAP);
    for (floor, crates) in floors.iter().rev() {
        let rows = crates.len().div_ceil(COLUMNS);
        let height = rows * (BOX_HEIGHT + GAP) + GAP;
        let _ = writeln!(
            body,
            "<rect class=\"floor\" x=\"{GAP}\" y=\"{top}\" width=\"{}\" height=\"{height}\" rx=\"3\"/>\
             <text class=\"level\" x=\"16\" y=\"{}\">floor {floor}</text>",
            WIDTH - 2 * GAP,
            top + height / 2 + 5
        );
        for (number, (name, phrase)) in crates.iter().enumerate() {
            let x = LEFT + number % COLUMNS * (BOX_WIDTH + GAP);
            let y = top + GAP + number / COLUMNS * (BOX_HEIGHT + GAP);
            let _ = writeln!(
                body,
                "<rect class=\"crate\" x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"2\"/>\
                 <text class=\"name\" x=\"{0}\" y=\"{1}\">{name}</text>\
                 <text class=\"what\" x=\"{0}\" y=\"{2}\">{phrase}</text>",
                x + 8,
                y + 17,
                y + 34
            );
        }
        top += height + GAP;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\">\n\
         <title>The floors of the repository</title>\n\
         <desc>A crate imports only from floors below its own.</desc>\n\
         <style>{STYLE}</style>\n{body}</svg>\n"
    )
}
