//! Tests of form parsers.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use futures_util::FutureExt;
use futures_util::stream;
use multer::{Constraints, Multipart};
use proptest::collection;
use proptest::option;
use proptest::prelude::*;

use crate::{
    FIELDS_MAX, FileEvent, Form, FormError, FormReader, MESSAGE_TEXT_BYTES_MAX, UploadedFile,
};

const URLENCODED: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data; boundary=B";

/// A field to write: its name, the name of its file, and its content.
type WrittenField = (String, Option<String>, Vec<u8>);

/// The parsed form of a message.
#[derive(Debug)]
struct MessageForm {
    form: Form<'static>,
    /// The files with their contents.
    files: Vec<(UploadedFile, Vec<u8>)>,
}

impl MessageForm {
    /// Parses a body that arrives in these pieces.
    fn of<'a>(
        content_type: &str,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<MessageForm, FormError> {
        let mut reader = FormReader::of(content_type)?;
        let mut heard = VecDeque::new();
        pieces.into_iter().try_for_each(|piece| reader.bytes_arrived(piece, &mut heard))?;
        reader.ended()?;
        let mut files: Vec<(UploadedFile, Vec<u8>)> = Vec::new();
        let mut is_within = false;
        for heard in heard {
            match heard {
                FileEvent::Began(file) => {
                    assert!(!core::mem::replace(&mut is_within, true));
                    files.push((file, Vec::new()));
                }
                FileEvent::Bytes(bytes) => {
                    assert!(is_within);
                    files.last_mut().expect("a file that has begun").1.extend(bytes);
                }
                FileEvent::Ended => assert!(core::mem::replace(&mut is_within, false)),
            }
        }
        assert!(!is_within, "each file ends");
        Ok(MessageForm { form: reader.into_form(), files })
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.form.text(name)
    }

    /// The files in this field, without files that have neither a name nor content.
    fn files(&self, name: &str) -> impl Iterator<Item = &(UploadedFile, Vec<u8>)> {
        self.files.iter().filter(move |(file, bytes)| {
            file.field == name && !(file.name.is_empty() && bytes.is_empty())
        })
    }
}

fn multipart(body: &[u8]) -> Result<MessageForm, FormError> {
    let whole = MessageForm::of(MULTIPART, [body]);
    let split = MessageForm::of(MULTIPART, body.chunks(1));
    assert_eq!(
        format!("{whole:?}"),
        format!("{split:?}"),
        "the result does not depend on the pieces"
    );
    whole
}

/// A body with one part, which has this head.
fn one(head: &str) -> Vec<u8> {
    format!("--B\r\n{head}\r\n\r\nx\r\n--B--\r\n").into_bytes()
}

const DISPOSITION: &str = "Content-Disposition: form-data; name=\"a\"";

#[test]
fn urlencoded_form_is_parsed_as_browsers_write_it() {
    let body = b"key=1.7&key=1.8&do=archive&to=&text=caf%C3%A9+%26+cr%C3%A8me%0D%0A%2B1&bad=%FF%zz";
    for content_type in [URLENCODED, "APPLICATION/x-www-form-urlencoded ; charset=UTF-8"] {
        let form = Form::of(content_type, body).expect("a form");
        assert_eq!(form.texts("key").collect::<Vec<_>>(), ["1.7", "1.8"]);
        assert_eq!(
            (form.text("do"), form.text("to"), form.text("no")),
            (Some("archive"), Some(""), None)
        );
        assert_eq!(form.text("text"), Some("café & crème\r\n+1"));
        assert_eq!(form.text("bad"), Some("\u{fffd}%zz"));
        let in_pieces = MessageForm::of(content_type, body.chunks(3)).expect("a form");
        assert_eq!(format!("{:?}", in_pieces.form), format!("{form:?}"));
    }
    assert_eq!(Form::of(URLENCODED, b"").expect("a form").text(""), None);
    for content_type in [
        "",
        "text/plain",
        "application/json",
        "multipart/mixed; boundary=B",
        "multipart/form-datax",
    ] {
        assert_eq!(
            Form::of(content_type, b"a=b").err(),
            Some(FormError::OtherType),
            "{content_type}"
        );
        assert_eq!(
            FormReader::of(content_type).err(),
            Some(FormError::OtherType),
            "{content_type}"
        );
    }
    assert_eq!(
        Form::of(MULTIPART, b"--B--").err(),
        Some(FormError::OtherType),
        "only a message form has files"
    );
}

/// The bodies of Chromium, Firefox, and curl, which omits the last line end.
#[test]
fn multipart_form_is_parsed_as_browsers_write_it() {
    const BODY: &[u8] = b"------WebKitFormBoundary7MA4\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\nGrace <g@example.org>\r\n\
        ------WebKitFormBoundary7MA4\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nh\xc3\xa4\r\n--\r\n\xff\r\n\r\n\
        ------WebKitFormBoundary7MA4\r\nContent-Disposition: form-data; name=\"files\"; filename=\"C:\\pics\\a%22b%22;\xc3\xbc.png\"\r\nContent-Type: image/png\r\n\r\n\r\n--\x00\r\n\
        ------WebKitFormBoundary7MA4\r\ncontent-disposition:form-data;name=files;filename=\"100%.txt\"; size=1 ;\r\nContent-Transfer-Encoding: binary\r\nX-Other: 1\r\n\r\n\r\n\
        ------WebKitFormBoundary7MA4\r\nContent-Disposition: form-data; name=\"files\"; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n\
        ------WebKitFormBoundary7MA4--";
    for (boundary, after) in [
        ("----WebKitFormBoundary7MA4", ""),
        ("\"----WebKitFormBoundary7MA4\"; charset=utf-8", "\r\n"),
        ("----WebKitFormBoundary7MA4", " \t\r\nsaid behind"),
    ] {
        let body = [BODY, after.as_bytes()].concat();
        // The body arrives in two pieces, cut at each byte, and in pieces of each size.
        let cut = (0..=body.len()).map(|at| vec![&body[..at], &body[at..]]);
        let ways = cut.chain((1..=body.len()).map(|size| body.chunks(size).collect()));
        for pieces in ways {
            let content_type = format!("Multipart/Form-Data; boundary={boundary}");
            let form = MessageForm::of(&content_type, pieces).expect("a form");
            assert_eq!(
                (form.text("to"), form.text("text")),
                (Some("Grace <g@example.org>"), Some("hä\r\n--\r\n\u{fffd}\r\n"))
            );
            let file = |name: &str, media_type: &str| UploadedFile {
                field: "files".into(),
                name: name.into(),
                media_type: media_type.into(),
            };
            let first = (file("a\"b\";ü.png", "image/png"), b"\r\n--\0".to_vec());
            assert!(
                form.files("files").eq([&first, &(file("100%.txt", ""), Vec::new())]),
                "{form:?}"
            );
            assert_eq!((form.text("files"), form.files("to").count()), (None, 0));
        }
    }
    assert_eq!(multipart(b"--B--\r\n").expect("an empty form").text("a"), None);
    assert_eq!(
        multipart(b"--B \t\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--B--")
            .expect("padding")
            .text("a"),
        Some("x")
    );
}

#[test]
fn ambiguous_form_is_refused() {
    let long = format!("{DISPOSITION}\r\nX: {}", "x".repeat(8192));
    for head in [
        "",
        "X: y",
        "Content-Disposition: form-data",
        "Content-Disposition: attachment; name=\"a\"",
        "Content-Disposition: form-datax; name=\"a\"",
        "Content-Disposition: form-file; name=\"a\"",
        "Content-Disposition: form-data name=\"a\"",
        "Content-Disposition: form-data; name=\"a\"; name=\"b\"",
        "Content-Disposition: form-data; name=\"a",
        "Content-Disposition: form-data; name=\"a\" x",
        "Content-Disposition: form-data; name=\"a\"; filename=\"b\"; FILENAME=\"c\"",
        "Content-Disposition: form-data;; name=\"a\"",
        "Content-Disposition: form-data; name=",
        "Content-Disposition : form-data; name=\"a\"",
        &format!("{DISPOSITION}\r\n{DISPOSITION}"),
        &format!("{DISPOSITION}\r\n folded"),
        &format!("{DISPOSITION}\r\nno field"),
        &format!("{DISPOSITION}\r\nContent-Transfer-Encoding: base64"),
        &format!("{DISPOSITION}\r\nContent-Type: a\r\ncontent-type: b"),
        "Content-Disposition: form-data; name=\"a\nb\"",
        "Content-Disposition: form-data; name=\"a\rb\"",
        &long,
    ] {
        assert_eq!(multipart(&one(head)).err(), Some(FormError::Malformed), "{head:?}");
    }
    assert_eq!(multipart(&one(DISPOSITION)).expect("a form").text("a"), Some("x"));
    let part =
        |line: &str, end: &str| format!("{line}\r\n{DISPOSITION}\r\n\r\nx{end}").into_bytes();
    for (line, end) in [
        ("--B", "\r\n--B-"),
        ("--B", "\r\n--B--x"),
        ("--B", "\r\n--B --"),
        ("--B", "\n--B--"),
        ("--B", "\r--B--"),
        ("--B", "--B--"),
        ("--B", "\r\n--b--"),
        ("--B", "\r\n--Bx\r\n--B--"),
        ("--B", "\r\n--B\n--B--"),
        ("--BB", "\r\n--B--"),
        ("--B x", "\r\n--B--"),
        ("--B\r\n--B", "\r\n--B--"),
        ("--B\r\n--B: x", "\r\n--B--"),
        ("x--B", "\r\n--B--"),
        ("\n--B", "\r\n--B--"),
        ("--B", "\r\n--B\r\n--B--"),
    ] {
        assert_eq!(
            multipart(&part(line, end)).err(),
            Some(FormError::Malformed),
            "{line:?} {end:?}"
        );
    }
    let of = |boundary: &str| {
        MessageForm::of(&format!("multipart/form-data{boundary}"), [&*one(DISPOSITION)]).err()
    };
    assert_eq!(of("; charset=utf-8; boundary=B; x=\"y z\""), None);
    for boundary in [
        "",
        ";",
        "; boundary",
        "; boundary=",
        "; boundary=\"B",
        "; boundary=B; boundary=B",
        "; boundary=B x",
        "; x; boundary=B",
    ] {
        assert_eq!(of(boundary), Some(FormError::Malformed), "{boundary:?}");
    }
    let quoted = |boundary: &str| {
        MessageForm::of(
            &format!("multipart/form-data; boundary=\"{boundary}\""),
            [&*written(&[], boundary)],
        )
        .err()
    };
    let longest = "B".repeat(70);
    for good in ["B", "B B", "'()+_,-./:=?", &longest] {
        assert_eq!(quoted(good), None, "{good:?}");
    }
    let too_long = "B".repeat(71);
    for bad in ["", "B ", "B\r\nB", "\u{e4}", "[B]", "B\\", "B;B", &too_long] {
        assert_eq!(quoted(bad), Some(FormError::Malformed), "{bad:?}");
    }
}

#[test]
fn truncated_form_is_refused() {
    let head = format!("{DISPOSITION}; filename=\"f\"\r\nContent-Type: text/plain");
    let body =
        format!("--B\r\n{DISPOSITION}\r\n\r\nx\r\n--B\r\n{head}\r\n\r\nx\r\n--B--").into_bytes();
    assert!(multipart(&body).is_ok());
    for end in 0..body.len() {
        assert_eq!(multipart(&body[..end]).err(), Some(FormError::Malformed), "{end}");
    }
}

#[test]
fn form_has_at_most_a_thousand_fields() {
    let plain = |count: usize| "a=b&".repeat(count).into_bytes();
    let parts = |count: usize| {
        [format!("--B\r\n{DISPOSITION}\r\n\r\nx\r\n").repeat(count).into_bytes(), b"--B--".to_vec()]
            .concat()
    };
    assert_eq!(
        Form::of(URLENCODED, &plain(FIELDS_MAX)).expect("a form").texts("a").count(),
        FIELDS_MAX
    );
    assert_eq!(Form::of(URLENCODED, &plain(FIELDS_MAX + 1)).err(), Some(FormError::TooLarge));
    for (content_type, enough, more) in [
        (URLENCODED, plain(FIELDS_MAX), plain(FIELDS_MAX + 1)),
        (MULTIPART, parts(FIELDS_MAX), parts(FIELDS_MAX + 1)),
    ] {
        let form = MessageForm::of(content_type, [&*enough]).expect("a form");
        assert_eq!(form.form.texts("a").count(), FIELDS_MAX);
        assert_eq!(MessageForm::of(content_type, [&*more]).err(), Some(FormError::TooLarge));
    }
}

#[test]
fn text_of_a_form_is_limited_and_files_are_not_buffered() {
    let with = |head: &str, length: usize| {
        let head = format!("--B\r\n{head}\r\n\r\n");
        [head.as_bytes(), &vec![b'x'; length], b"\r\n--B--"].concat()
    };
    let in_pieces =
        |body: &[u8]| MessageForm::of(MULTIPART, body.chunks(10_000)).map(|form| form.files);
    assert_eq!(in_pieces(&with(DISPOSITION, MESSAGE_TEXT_BYTES_MAX - 1)).expect("a form"), []);
    assert_eq!(
        in_pieces(&with(DISPOSITION, MESSAGE_TEXT_BYTES_MAX)).err(),
        Some(FormError::TooLarge)
    );
    let files =
        in_pieces(&with(&format!("{DISPOSITION}; filename=\"f\""), 4 * MESSAGE_TEXT_BYTES_MAX))
            .expect("a form");
    assert!(files[0].1 == vec![b'x'; 4 * MESSAGE_TEXT_BYTES_MAX]);
    let named = format!("--B\r\n{DISPOSITION}; filename=\"{}\"\r\n\r\nx\r\n", "f".repeat(8000));
    let named =
        |count: usize| in_pieces(&[named.repeat(count).as_bytes(), b"--B--"].concat()).err();
    assert_eq!(named(MESSAGE_TEXT_BYTES_MAX / 8001), None);
    assert_eq!(
        named(MESSAGE_TEXT_BYTES_MAX / 8001 + 1),
        Some(FormError::TooLarge),
        "names of files count as text"
    );
    let plain = |length: usize| {
        MessageForm::of(URLENCODED, [&*[b"a=", &*vec![b'x'; length]].concat()]).err()
    };
    assert_eq!(plain(MESSAGE_TEXT_BYTES_MAX - 2), None);
    assert_eq!(plain(MESSAGE_TEXT_BYTES_MAX - 1), Some(FormError::TooLarge));

    // The parser buffers at most a head, or the possible beginning of a delimiter.
    let mut reader = FormReader::of(MULTIPART).expect("a form");
    let mut heard = VecDeque::new();
    let most = with(&format!("{DISPOSITION}; filename=\"f\""), 1 << 20);
    for piece in most.chunks(1000).take(1000) {
        reader.bytes_arrived(piece, &mut heard).expect("a form");
        assert!(reader.kept_bytes() < 100, "{}", reader.kept_bytes());
    }
}

fn written(fields: &[WrittenField], boundary: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file_name, content) in fields {
        let file = file_name
            .as_ref()
            .map(|name| format!("; filename=\"{name}\"\r\nContent-Type: text/plain"));
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{}\r\n\r\n",
            file.unwrap_or_default()
        );
        body.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend(format!("--{boundary}--\r\n").into_bytes());
    body
}

/// The fields that multer reads from a body.
fn read_by_multer(body: &[u8], boundary: &str) -> Option<Vec<WrittenField>> {
    let chunks = stream::iter([Ok::<_, multer::Error>(body.to_vec())]);
    let mut parts = Multipart::with_constraints(chunks, boundary, Constraints::new());
    let mut fields = vec![];
    loop {
        let Some(part) = parts.next_field().now_or_never()?.ok()? else { return Some(fields) };
        let (name, file_name) = (part.name()?.into(), part.file_name().map(String::from));
        fields.push((name, file_name, part.bytes().now_or_never()?.ok()?.to_vec()));
    }
}

/// Whether the form has these fields, in the same order for each name.
fn is_read_as(form: &MessageForm, written_fields: &[WrittenField]) -> bool {
    written_fields.iter().all(|(name, ..)| {
        let of_name = || written_fields.iter().filter(|(own, ..)| own == name);
        let texts = of_name()
            .filter(|(_, file, _)| file.is_none())
            .map(|(.., text)| String::from_utf8_lossy(text));
        let files =
            of_name().filter_map(|(_, file, content)| Some((&**file.as_ref()?, &**content)));
        let chosen = files.filter(|(name, content)| !name.is_empty() || !content.is_empty());
        form.form.texts(name).eq(texts)
            && form.files(name).map(|(file, bytes)| (&*file.name, &**bytes)).eq(chosen)
    })
}

fn written_fields() -> impl Strategy<Value = Vec<WrittenField>> {
    let content = prop_oneof![
        collection::vec(any::<u8>(), 0..40),
        collection::vec(prop::sample::select(b"\r\n-Bx".to_vec()), 0..40),
    ];
    collection::vec(("[a-z]{1,5}", option::of("[^\\p{Cc}\"%/\\\\]{0,9}"), content), 0..6)
}

proptest! {
    #[test]
    fn written_forms_are_parsed_the_same_as_by_multer(written_fields in written_fields(), boundary in "[A-Za-z0-9'()+_,./:=?-]{10,70}") {
        let body = written(&written_fields, &boundary);
        let content_type = format!("multipart/form-data; boundary=\"{boundary}\"");
        for size in [1, 2, 7, 64, body.len()] {
            let form = MessageForm::of(&content_type, body.chunks(size)).expect("a form");
            prop_assert!(is_read_as(&form, &written_fields), "{:?}", form);
        }
        let theirs = read_by_multer(&body, &boundary);
        prop_assert_eq!(theirs, Some(written_fields));
    }

    #[test]
    fn accepted_damaged_forms_are_parsed_the_same_as_by_multer(
        written_fields in written_fields(),
        edits in collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"\r\n-B:; =\"ax\0".to_vec()), any::<bool>()), 0..4),
        noise in collection::vec(any::<u8>(), 0..60),
    ) {
        // multer drops heads that are not UTF-8.
        let written_fields: Vec<WrittenField> = written_fields
            .into_iter()
            .map(|(name, file, content)| (name, file.map(|file| file.replace(|form: char| !form.is_ascii(), "")), content))
            .collect();
        let mut body = written(&written_fields, "B");
        for (at, byte, inserts) in edits {
            let at = at.index(body.len());
            if inserts { body.insert(at, byte) } else { body[at] = byte }
        }
        if let (Ok(form), Some(theirs)) = (multipart(&body), read_by_multer(&body, "B")) {
            prop_assert!(is_read_as(&form, &theirs), "{:?} {:?}", form, theirs);
        }
        let _ = (Form::of(URLENCODED, &noise), multipart(&noise));
    }
}
