//! Dates that clients send. The parser is compared with the crate `httpdate`.

use core::time::Duration;

use crate::date::parse;
use proptest::prelude::*;

#[test]
fn all_three_forms_of_a_date_are_read() {
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
    }
}

#[test]
fn malformed_dates_are_ignored() {
    for text in [
        "",
        " ",
        "Sun,",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 29 Feb 1995 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1969 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(parse(text.as_bytes()), None, "{text}");
    }
}

proptest! {
    #[test]
    fn a_date_is_parsed_to_its_second(seconds in 0u64..253_402_300_800) {
        let start = httpdate::parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT").unwrap();
        let text = httpdate::fmt_http_date(start + Duration::from_secs(seconds));
        prop_assert_eq!(parse(text.as_bytes()), Some(seconds));
    }

    #[test]
    fn no_text_breaks_the_date_parser(text in proptest::collection::vec(any::<u8>(), 0..40)) {
        parse(&text);
    }
}
