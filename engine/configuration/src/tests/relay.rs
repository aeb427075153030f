//! Tests of the settings of `[relay]`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::{Configuration, Relay, Way};
use super::{refused, with_root};

fn relay(rest: &str) -> Relay {
    Configuration::parse(&with_root(&format!("[relay]\n{rest}"))).expect("it is right").relay
}

/// The route of mail to a domain: `-`, or the host and port, the use of TLS, and the user name.
fn way(relay: &Relay, domain: &str) -> String {
    match relay.way_to(domain) {
        Way::Direct => "-".to_string(),
        Way::By(smarthost) => {
            let user = smarthost.login.as_ref().map_or("", |login| &login.user);
            format!("{} {:?} {user}", smarthost.place, smarthost.tls)
        }
    }
}

#[test]
fn mail_is_delivered_directly_by_default() {
    let relay = Configuration::parse(&with_root("")).expect("it is right").relay;
    assert_eq!(
        (relay.way_to("b.test"), relay.smarthosts().len(), relay.authorities.len()),
        (&Way::Direct, 0, 0)
    );
}

#[test]
fn a_domain_may_have_its_own_smarthost() {
    let relay = relay(
        "smarthost = 'Mail.ISP.example:587'\nuser = 'ada'\npassword = 'pencil'\ntls = 'starttls'\nca = 'ca.pem'\n\
         [[relay.domain]]\ndomains = ['Outlook.com', 'hotmail.com']\nsmarthost = '[2001:db8::9]:465'\ntls = 'implicit'\n\
         [[relay.domain]]\ndomains = ['far.test']\ndirect = true\n\
         [[relay.domain]]\ndomains = ['clear.test']\nsmarthost = '10.0.0.9:25'\ntls = 'none'\nuser = 'grace'\npassword = 'x'\n",
    );
    for (domain, expected) in [
        ("b.test", "mail.isp.example:587 StartTls ada"),
        ("outlook.com", "[2001:db8::9]:465 Implicit "),
        ("hotmail.com", "[2001:db8::9]:465 Implicit "),
        ("www.hotmail.com", "mail.isp.example:587 StartTls ada"),
        ("far.test", "-"),
        ("clear.test", "10.0.0.9:25 None grace"),
    ] {
        assert_eq!(way(&relay, domain), expected, "{domain}");
    }
    let ports: Vec<u16> = relay.smarthosts().iter().map(|smarthost| smarthost.place.port).collect();
    assert_eq!(ports, [587, 25, 465]);
    let files: Vec<_> =
        relay.authorities.iter().map(|named| (named.file.as_str(), named.line)).collect();
    assert_eq!(files, [("ca.pem", 8)]);
    assert!(!format!("{relay:?}").contains("pencil"));
}

#[test]
fn a_domain_smarthost_needs_no_default_smarthost() {
    let relay = relay("[[relay.domain]]\ndomains = ['far.test']\nsmarthost = '10.0.0.9:25'\n");
    assert_eq!(
        (way(&relay, "far.test").as_str(), way(&relay, "b.test").as_str()),
        ("10.0.0.9:25 IfOffered ", "-")
    );
}

#[test]
fn private_networks_are_prefixes_and_none_by_default() {
    assert_eq!(relay("").private_networks, []);
    let networks =
        relay("private_networks = ['10.0.0.0/24', 'fd00::/64', '0.0.0.0/0', '10.9.0.1/32']")
            .private_networks;
    let ranges: Vec<String> =
        networks.iter().map(|network| format!("{:?}", network.addresses())).collect();
    let expected = [
        "10.0.0.0..=10.0.0.255",
        "fd00::..=fd00::ffff:ffff:ffff:ffff",
        "0.0.0.0..=255.255.255.255",
        "10.9.0.1..=10.9.0.1",
    ];
    assert_eq!(ranges, expected);
    for (networks, what, expected) in [
        ("'10.0.0.0/24'", "wrong type, string", "a list of prefixes"),
        ("['10.0.0.9']", "the length of the prefix is missing", "10.0.2.0/24"),
        ("['10.0.0.0/24', '10.0.0.0/24']", "twice", "once"),
    ] {
        refused(&with_root(&format!("[relay]\nprivate_networks = {networks}")), 4, what, expected);
    }
}

#[test]
fn a_malformed_smarthost_is_rejected() {
    for (place, what) in [
        ("mail.isp.example", "the port is missing"),
        ("10.0.0.9", "the port is missing"),
        ("mail.isp.example:", "is not a port number"),
        ("mail.isp.example:0", "is not a port number"),
        ("mail.isp.example:65536", "is not a port number"),
        ("mail.isp.example:+25", "is not a port number"),
        ("2001:db8::9:587", "an IPv6 address must be in brackets"),
        ("[2001:db8::9]", "the closing bracket is missing"),
        ("[mail.isp.example]:25", "the text in brackets is not an IPv6 address"),
        ("127.0.0.1:25", "not the address of a host"),
        ("mail:25", "no dot"),
        (":25", "the name is empty"),
    ] {
        refused(
            &with_root(&format!("[relay]\nsmarthost = '{place}'")),
            4,
            what,
            "[2001:db8::9]:587",
        );
    }
}

#[test]
fn invalid_relay_settings_are_rejected_with_line() {
    let smart = "smarthost = 'smart.test:25'\n";
    let domain = |rest: &str| format!("[[relay.domain]]\n{rest}\n");
    let far = "domains = ['far.test']\n";
    for (rest, line, what, expected) in [
        ("tls = 'starttls'".to_string(), 4, "`tls` needs `smarthost`", "mail.isp.example:587"),
        ("user = 'ada'".to_string(), 4, "`user` needs `smarthost`", "10.0.0.9:25"),
        ([smart, "tls = 'ssl'"].concat(), 5, "`ssl`: this is not a valid TLS mode", "\"implicit\""),
        ([smart, "user = 'ada'"].concat(), 5, "`password` is missing", "both"),
        ([smart, "password = 'x'"].concat(), 5, "`user` is missing", "both"),
        ([smart, "user = ''\npassword = 'x'"].concat(), 5, "the user is empty", "one character"),
        (
            [smart, "user = 'ada'\npassword = ''"].concat(),
            6,
            "the password is empty",
            "one character",
        ),
        ([smart, "smart = 1"].concat(), 5, "`smart` is not a valid key in relay", "one of"),
        ([smart, "direct = true"].concat(), 5, "`direct` is not a valid key in relay", "one of"),
        ([smart, "ca = ''"].concat(), 5, "the name of the file is empty", "ca.pem"),
        ([smart, "ca = 1"].concat(), 5, "wrong type, integer", "ca.pem"),
        (domain(""), 4, "`domains` is missing", "example.org"),
        (domain("domains = []\ndirect = true"), 5, "the list of domains is empty", "example.org"),
        (
            domain(far),
            4,
            "the section says neither `direct` nor `smarthost`",
            "`direct = true` or `smarthost`",
        ),
        (
            domain(&[far, "direct = false"].concat()),
            4,
            "the section says neither `direct` nor `smarthost`",
            "`smarthost`",
        ),
        (
            domain(&[far, smart, "direct = true"].concat()),
            4,
            "cannot be used together",
            "one of the two",
        ),
        (domain(&[far, "direct = true\nuser = 'ada'"].concat()), 7, "`user` needs", "10.0.0.9:25"),
        (
            domain("domains = ['a.test', 'A.test']\ndirect = true"),
            5,
            "`a.test` is listed twice",
            "once",
        ),
        (
            [smart, &domain(&[far, smart].concat())].concat(),
            7,
            "`smart.test:25` is listed twice",
            "all its domains",
        ),
    ] {
        refused(&with_root(&format!("[relay]\n{rest}")), line, what, expected);
    }
}
