//! The packed site: a valid pack with changes, or any bytes. If the server accepts the pack, a
//! client requests each file.
//!
//! Oracles: no panic. In an accepted pack the paths are in order, and each file is found by its
//! path. The server sends only bytes of the pack, in well-formed responses.

use std::sync::atomic::{AtomicUsize, Ordering};

use arbitrary::{Arbitrary, Unstructured};
use http::{Session, Site, SiteError, SiteFile, pack};

use crate::http_session::reading;
use crate::http_session::world::World;

/// The sizes of the pack's header and of the entry of a file.
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 112;
/// The memory of a site is never freed, so the sum of all sites in one process is limited. Inputs
/// beyond the limit are skipped.
const SITES_BYTES_MAX: usize = 1 << 30;

static SITES_BYTES: AtomicUsize = AtomicUsize::new(0);

#[derive(Arbitrary, Debug)]
enum Input {
    /// A valid pack with changes.
    Changed(Vec<Change>),
    /// Any bytes after a valid header.
    Headed(Vec<u8>),
    Raw(Vec<u8>),
}

/// One change of a pack.
#[derive(Arbitrary, Debug)]
enum Change {
    /// Another value of a number of 4 bytes in an entry: an offset, or a length.
    Number { entry: u8, field: u8, value: Value },
    /// Another value of any byte.
    Byte { at: u16, value: u8 },
    /// Another length of the pack, also in its header.
    Length { bytes: u16 },
    /// Another number of files in the header.
    Count { files: u8 },
}

/// The new value of a number.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Value {
    Little(u8),
    More(u16),
    FromEnd(u8),
    Any(u32),
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let bytes = match input {
        Input::Changed(changes) => changed(&changes),
        Input::Headed(mut bytes) => {
            bytes.truncate(1_024);
            let mut whole = [b"BPSITE\0\x02", [3, 0, 0, 0, 0, 0, 0, 0].as_slice(), &bytes].concat();
            set_length(&mut whole);
            whole
        }
        Input::Raw(bytes) => bytes,
    };
    if SITES_BYTES.fetch_add(bytes.len(), Ordering::Relaxed) > SITES_BYTES_MAX {
        return;
    }
    let pack: &'static [u8] = bytes.leak();
    match Site::new(pack) {
        Ok(site) => check(&site, pack),
        Err(SiteError::NotASite | SiteError::Broken) => {}
    }
}

fn valid() -> Vec<u8> {
    let file = |plain: &[u8]| SiteFile {
        content_type: "text/plain".into(),
        modified: "Sun, 06 Nov 1994 08:49:37 GMT".into(),
        plain: plain.to_vec(),
        gzip: Some(b"gz".to_vec()),
        brotli: None,
    };
    let files = [("/a", file(b"one")), ("/b/index.html", file(b"")), ("/c.txt", file(b"three"))];
    pack(&files.map(|(path, file)| (path.to_string(), file)).into()).expect("the files are right")
}

fn changed(changes: &[Change]) -> Vec<u8> {
    let mut pack = valid();
    for change in changes.iter().take(16) {
        match change {
            Change::Number { entry, field, value } => {
                let places = ENTRY_BYTES / 4;
                let at = HEADER_BYTES
                    + usize::from(entry % 3) * ENTRY_BYTES
                    + usize::from(*field) % places * 4;
                let value = match *value {
                    Value::Little(value) => value.into(),
                    Value::More(value) => value.into(),
                    Value::FromEnd(value) => (pack.len() as u32).wrapping_sub(value.into()),
                    Value::Any(value) => value,
                };
                put(&mut pack, at, &value.to_le_bytes());
            }
            Change::Byte { at, value } => {
                let at = usize::from(*at) % pack.len().max(1);
                put(&mut pack, at, &[*value]);
            }
            Change::Length { bytes } => {
                pack.resize(usize::from(*bytes) % 2_048, 0);
                set_length(&mut pack);
            }
            Change::Count { files } => put(&mut pack, 8, &u32::from(*files).to_le_bytes()),
        }
    }
    pack
}

fn set_length(pack: &mut [u8]) {
    let length = (pack.len() as u32).to_le_bytes();
    put(pack, 12, &length);
}

fn put(pack: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = pack.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}

/// The part of the pack that an entry refers to. `at`: the position of the offset and length in
/// `entry`.
fn content(pack: &'static [u8], entry: &[u8], at: usize) -> &'static [u8] {
    let number = |at: usize| {
        u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]) as usize
    };
    &pack[number(at)..number(at) + number(at + 4)]
}

/// Checks the entries of an accepted site, and requests each file.
fn check(site: &Site, pack: &'static [u8]) {
    let entries = pack[HEADER_BYTES..].chunks_exact(ENTRY_BYTES).take(site.len());
    assert_eq!(entries.len(), site.len(), "each file has an entry");
    let mut before: &[u8] = b"";
    for entry in entries {
        let path = content(pack, entry, 0);
        assert!(before < path, "paths are in order");
        before = path;
        let path = std::str::from_utf8(path).expect("a path is text");
        let resource = site.find(path).expect("each file is found by its path");
        let found: Vec<&[u8]> = resource.representations().map(|one| one.bytes).collect();
        let codings = [64, 72, 80].into_iter().filter(|at| entry[*at..*at + 4] != [0; 4]);
        let contents: Vec<&'static [u8]> = codings.map(|at| content(pack, entry, at)).collect();
        assert_eq!(found, contents, "a file has the content that its entry declares");
        serve(*site, path, contents);
    }
}

/// A client requests a file twice: without and with compression.
fn serve(site: Site, path: &str, contents: Vec<&'static [u8]>) {
    let target: String = path.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let request = format!("GET /{} HTTP/1.1\r\nHost: a\r\n", target.trim_start_matches("%2f"));
    let requests = format!("{request}\r\n{request}Accept-Encoding: br, gzip\r\n\r\n");
    let mut world = World::new(site, contents);
    world.send_room = usize::MAX;
    let mut session = Session::connected(&mut world);
    session.bytes_arrived(requests.as_bytes(), &mut world);
    assert!(world.log.len() == 2 || world.closed, "each request gets its answer");
    reading::check(&world);
}
