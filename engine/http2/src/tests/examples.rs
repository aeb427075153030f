//! The examples of RFC 7541 appendix C.

use std::string::String;
use std::vec::Vec;

use super::speaker::{bytes, decode};
use crate::Decoder;

fn decoded_fields(decoder: &mut Decoder, block: &str) -> Vec<String> {
    let (pairs, _) = decode(decoder, &bytes(block)).unwrap();
    pairs
        .into_iter()
        .map(|(name, value)| [name, value].map(|text| String::from_utf8(text).unwrap()).join(": "))
        .collect()
}

const FIRST: [&str; 4] =
    [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];

#[test]
fn rfc_7541_field_examples_are_decoded() {
    let mut decoder = Decoder::new();
    let block = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    assert_eq!(decoded_fields(&mut decoder, block), ["custom-key: custom-header"], "C.2.1");
    assert_eq!(
        decoded_fields(&mut decoder, "be"),
        ["custom-key: custom-header"],
        "the field was added to the table"
    );
    assert_eq!(
        decoded_fields(&mut decoder, "040c 2f73 616d 706c 652f 7061 7468"),
        [":path: /sample/path"],
        "C.2.2"
    );
    assert_eq!(
        decoded_fields(&mut decoder, "1008 7061 7373 776f 7264 0673 6563 7265 74"),
        ["password: secret"],
        "C.2.3"
    );
    assert_eq!(decoded_fields(&mut decoder, "82"), [":method: GET"], "C.2.4");
}

#[test]
fn rfc_7541_request_examples_are_decoded() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new();
        assert_eq!(decoded_fields(&mut decoder, blocks[0]), FIRST);
        let second = decoded_fields(&mut decoder, blocks[1]);
        assert_eq!(
            (&second[..4], &second[4..]),
            (&FIRST.map(String::from)[..], &["cache-control: no-cache".into()][..])
        );
        assert_eq!(
            decoded_fields(&mut decoder, blocks[2]),
            [
                ":method: GET",
                ":scheme: https",
                ":path: /index.html",
                ":authority: www.example.com",
                "custom-key: custom-value"
            ]
        );
    }
}

#[test]
fn rfc_7541_response_examples_are_decoded() {
    let mut decoder = Decoder::new();
    // The block starts with the limit of 256 bytes that the examples in C.6 assume.
    let first = decoded_fields(
        &mut decoder,
        "3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
    );
    let common = [
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ];
    assert_eq!((first[0].as_str(), &first[1..]), (":status: 302", &common.map(String::from)[..]));
    let second = decoded_fields(&mut decoder, "4883 640e ffc1 c0bf");
    assert_eq!((second[0].as_str(), &second[1..]), (":status: 307", &common.map(String::from)[..]));
    let third = decoded_fields(
        &mut decoder,
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    );
    assert_eq!(
        third,
        [
            ":status: 200",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:22 GMT",
            "location: https://www.example.com",
            "content-encoding: gzip",
            "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ]
    );
}
