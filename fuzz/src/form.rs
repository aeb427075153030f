//! The webmail form of a message to be sent, with any bytes.
//!
//! Oracles: the result does not depend on the pieces in which the form arrives. The reader returns
//! at most the bytes of the form.

use std::collections::VecDeque;

use webmail::{FileEvent, FormError, FormReader, MESSAGE_TEXT_BYTES_MAX};

/// The content types of a form with files and of a form without.
const TYPES: [&str; 2] = ["multipart/form-data; boundary=B", "application/x-www-form-urlencoded"];

/// The parsed form: its texts as one string, and for each file its description and its content.
type Read = (String, Vec<(String, Vec<u8>)>);

/// Runs one input: a byte for the piece size, and a form.
pub fn run(data: &[u8]) {
    let Some((cut, body)) = data.split_first() else { return };
    for content_type in TYPES {
        let whole = read(content_type, [body]);
        let cut = read(content_type, body.chunks(1 + usize::from(*cut)));
        assert_eq!(whole, cut, "the result does not depend on cuts");
        if let Ok((_, files)) = whole {
            let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
            assert!(bytes <= body.len(), "the files have more bytes than the form");
        }
    }
}

fn read<'a>(
    content_type: &str,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Read, FormError> {
    let mut reader = FormReader::of(content_type)?;
    let mut events = VecDeque::new();
    for piece in pieces {
        reader.bytes_arrived(piece, &mut events)?;
    }
    reader.ended()?;
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut is_within = false;
    for event in events {
        match event {
            FileEvent::Began(file) => {
                assert!(
                    !std::mem::replace(&mut is_within, true),
                    "a file ends before the next one begins"
                );
                files.push((format!("{file:?}"), Vec::new()));
            }
            FileEvent::Bytes(bytes) => {
                assert!(is_within, "bytes belong to a file");
                files.last_mut().expect("a file has begun").1.extend(bytes);
            }
            FileEvent::Ended => {
                assert!(std::mem::replace(&mut is_within, false), "a file begins before it ends")
            }
        }
    }
    assert!(!is_within, "each file ends");
    let texts = format!("{:?}", reader.form());
    assert!(texts.len() <= 16 * MESSAGE_TEXT_BYTES_MAX, "texts are bounded");
    Ok((texts, files))
}
