//! Tests of parsing the entries of the file directory.

use super::*;

fn entry(bytes: u32, key: u16, name: &[u8]) -> Vec<u8> {
    let mut entry = [&bytes.to_be_bytes()[..], &key.to_be_bytes(), &[0, 0], name].concat();
    entry.resize(ENTRY_BYTES, 0);
    entry
}

#[test]
fn file_is_found_by_its_whole_name() {
    let file = entry(1234, 0x2A, b"opt/barepost/barepost.toml");
    assert_eq!(parse(&file, "opt/barepost/barepost.toml"), Some((0x2A, 1234)));
    assert_eq!(parse(&file, "opt/barepost/barepost"), None);
    assert_eq!(parse(&file, "opt/barepost/barepost.toml2"), None);
    assert_eq!(parse(&entry(1, 1, &[b'x'; 56]), &"x".repeat(56)), Some((1, 1)));
}

#[test]
fn file_that_is_too_long_is_not_found() {
    assert_eq!(parse(&entry(u32::MAX, 1, b"x"), "x"), None);
}
