//! Tests of the settings of `[filter]`.

use alloc::format;
use alloc::string::ToString;

use machine::Micros;

use super::super::{Configuration, WhenAway};
use super::{refused, with_root};

#[test]
fn there_is_no_filter_by_default() {
    assert_eq!(Configuration::parse(&with_root("")).expect("it is right").filter, None);
}

#[test]
fn a_filter_url_has_a_name_or_an_address() {
    for (rest, place, seconds, when_away) in [
        ("url = 'http://10.0.0.5:11333'", "10.0.0.5:11333", 5, WhenAway::Accept),
        (
            "url = 'http://Filter.a.test:80/'\ntimeout = '60s'\nwhen_away = 'accept'",
            "filter.a.test:80",
            60,
            WhenAway::Accept,
        ),
        (
            "url = 'http://[2001:db8::9]:11333'\npassword = 'pencil'\nwhen_away = 'junk'",
            "[2001:db8::9]:11333",
            5,
            WhenAway::Junk,
        ),
        (
            "url = 'http://10.0.0.5:11333'\ntimeout = '1s'\nwhen_away = 'defer'",
            "10.0.0.5:11333",
            1,
            WhenAway::Defer,
        ),
    ] {
        let configuration =
            Configuration::parse(&with_root(&format!("[filter]\n{rest}"))).expect("it is right");
        let filter = configuration.filter.expect("it is named");
        assert_eq!(
            (filter.place.to_string().as_str(), filter.timeout),
            (place, Micros::from_secs(seconds))
        );
        assert_eq!(
            (filter.when_away, filter.password.is_some()),
            (when_away, rest.contains("pencil"))
        );
        assert!(!format!("{filter:?}").contains("pencil"));
    }
}

#[test]
fn malformed_filter_settings_are_rejected() {
    let url = "url = 'http://10.0.0.5:11333'\n";
    for (rest, line, what, expected) in [
        ("".to_string(), 3, "`url` is missing in filter", "http://10.0.0.5:11333"),
        (
            "url = 'https://10.0.0.5:11333'".to_string(),
            4,
            "a filter is contacted without TLS only",
            "http://10.0.0.5:11333",
        ),
        (
            "url = '10.0.0.5:11333'".to_string(),
            4,
            "does not start with http://",
            "http://10.0.0.5:11333",
        ),
        ("url = 'http://10.0.0.5'".to_string(), 4, "the port is missing", "http://10.0.0.5:11333"),
        (
            "url = 'http://10.0.0.5:11333/checkv2'".to_string(),
            4,
            "is not a port number",
            "http://10.0.0.5:11333",
        ),
        (
            "url = 'http://127.0.0.1:11333'".to_string(),
            4,
            "not the address of a host",
            "http://10.0.0.5:11333",
        ),
        ([url, "password = ''"].concat(), 5, "the password is empty", "one character"),
        ([url, "timeout = '61s'"].concat(), 5, "the time is out of range", "\"1s\" to \"60s\""),
        ([url, "timeout = '999ms'"].concat(), 5, "the time is out of range", "\"1s\" to \"60s\""),
        ([url, "timeout = 5"].concat(), 5, "wrong type, integer", "2s"),
        (
            [url, "when_away = 'reject'"].concat(),
            5,
            "`reject`: this is not a valid action",
            "\"defer\"",
        ),
        ([url, "max_size = 1"].concat(), 5, "`max_size` is not a valid key in filter", "one of"),
    ] {
        refused(&with_root(&format!("[filter]\n{rest}")), line, what, expected);
    }
}
