//! The picture of the floors, generated from the table in ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::manifest::{PAGE, floor_table};
use super::tree::Tree;
use super::violation::Violation;

/// Where the picture is.
pub(super) const PICTURE: &str = "docs/figures/floors.svg";
/// Where the correct picture is written, below `target`.
pub(super) const DRAWN: &str = "test/floors.svg";

/// The number of crates in a row, and the size of their boxes.
const COLUMNS: usize = 6;
const BOX_WIDTH: usize = 150;
const BOX_HEIGHT: usize = 32;
const GAP: usize = 6;
const LEFT: usize = 74;
const WIDTH: usize = LEFT + COLUMNS * (BOX_WIDTH + GAP) + 2 * GAP;

const STYLE: &str = "text{font-family:system-ui,sans-serif;font-size:13px}\
                     .floor{fill:#f4f1ea;stroke:#8a8172}.crate{fill:#fff;stroke:#5b6470}.name{fill:#1d2733}\
                     .level{fill:#6b6355}\
                     @media (prefers-color-scheme: dark){.floor{fill:#23211d;stroke:#77705f}\
                     .crate{fill:#171b20;stroke:#8d97a3}.name{fill:#eef2f6}.level{fill:#a79f8e}}";

/// Rule: the picture matches the table.
pub(super) fn drawn(tree: &Tree) -> Vec<Violation> {
    if tree.text(PICTURE) == Some(&picture(tree)) {
        return Vec::new();
    }
    vec![Violation::of_file(
        PICTURE,
        format_args!("this is not the picture of the table in {PAGE}; copy target/{DRAWN} over it"),
    )]
}

/// The floors as a picture, the highest at the top, with the crates of each.
pub(super) fn picture(tree: &Tree) -> String {
    let mut floors: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (folder, floor) in floor_table(tree) {
        floors.entry(floor).or_default().push(folder);
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
        for (number, name) in crates.iter().enumerate() {
            let x = LEFT + number % COLUMNS * (BOX_WIDTH + GAP);
            let y = top + GAP + number / COLUMNS * (BOX_HEIGHT + GAP);
            let _ = writeln!(
                body,
                "<rect class=\"crate\" x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"2\"/>\
                 <text class=\"name\" x=\"{}\" y=\"{}\">{name}</text>",
                x + 8,
                y + 21
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
