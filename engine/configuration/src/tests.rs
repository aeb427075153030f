//! Tests of the settings of a `barepost.toml`, and of the error for each mistake.

mod filter;
mod reference;
mod relay;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use machine::Micros;
use mail::ClientLimits;

use super::values::Value as _;
use super::{
    Configuration, DiskFormat, FORWARDS_MAX, Forwarding, HostName, Keep, Limits, MailAddress,
    Password, PerDay, PolicyMode, Quota, TEXT_BYTES_MAX, USERS_MAX, WebSettings,
};

const WHOLE: &str = r#"hostname = "Mail.Barepost.test"
domains  = ["barepost.test", "example.org"]

[network]
address = "10.0.0.2/24"
gateway = "10.0.0.1"
dns     = ["10.0.0.1", "9.9.9.9"]

[[user]]
address  = "Ada@barepost.test"
password = "a plain one"
aliases  = ["postmaster@barepost.test", "ada@example.org"]
admin    = true

[[user]]
address  = "grace@barepost.test"
password_hash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$4x0SWUhwAkvSPcWYL6FYLzDtcyMOW9ezJ5LRZr/0XW0"

[access]
plaintext_auth_from = ["10.0.2.0/24", "::1/128"]
unthrottled_from    = ["10.0.2.0/24"]
"#;

#[test]
fn a_whole_file_is_understood() {
    let configuration = Configuration::parse(WHOLE).unwrap();
    assert_eq!(configuration.hostname.as_str(), "mail.barepost.test");
    assert_eq!(
        configuration.domains.iter().map(ToString::to_string).collect::<Vec<String>>(),
        ["barepost.test", "example.org"]
    );
    let network = configuration.network.as_ref().unwrap();
    assert_eq!(
        network.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.0.0.2/24"]
    );
    assert_eq!((network.gateway, network.ipv6_gateway), (Some(Ipv4Addr::new(10, 0, 0, 1)), None));
    assert_eq!(network.dns, [IpAddr::from([10, 0, 0, 1]), IpAddr::from([9, 9, 9, 9])]);
    let [ada, grace] = configuration.users.as_slice() else { panic!("two accounts") };
    assert_eq!(ada.address.as_str(), "ada@barepost.test");
    assert_eq!((ada.address.local_part(), ada.address.domain()), ("ada", "barepost.test"));
    assert_eq!(ada.password, Password::Plain("a plain one".into()));
    assert_eq!(ada.aliases.len(), 2);
    assert!(ada.is_administrator && !grace.is_administrator);
    assert!(matches!(&grace.password, Password::Argon2id(hash) if hash.starts_with("$argon2id$")));
    assert_eq!(configuration.postmaster(), ada.address.as_str());
}

#[test]
fn absent_keys_and_sections_have_their_defaults() {
    let configuration =
        Configuration::parse("hostname = 'mail.a.test'\ndomains = ['a.test']\n").unwrap();
    assert_eq!(configuration.network, None);
    assert!(configuration.users.is_empty());
    assert_eq!(configuration.postmaster(), "kept-for-postmaster@a.test");
    assert!(!configuration.access.allows_plaintext_auth(IpAddr::from([127, 0, 0, 1])));
}

#[test]
fn a_prefix_holds_its_addresses_and_no_other() {
    let access = Configuration::parse(WHOLE).unwrap().access;
    assert!(access.allows_plaintext_auth(IpAddr::from([10, 0, 2, 0])));
    assert!(access.allows_plaintext_auth(IpAddr::from([10, 0, 2, 255])));
    assert!(!access.allows_plaintext_auth(IpAddr::from([10, 0, 3, 0])));
    assert!(access.allows_plaintext_auth("::1".parse().unwrap()));
    assert!(!access.is_unthrottled("::1".parse().unwrap()));
    let all_addresses = with_access("plaintext_auth_from = ['0.0.0.0/0']");
    let access = Configuration::parse(&all_addresses).unwrap().access;
    assert!(access.allows_plaintext_auth(IpAddr::from([255, 1, 2, 3])));
    assert!(!access.allows_plaintext_auth("::1".parse().unwrap()));
}

#[test]
fn names_are_compared_without_regard_to_case() {
    let configuration = Configuration::parse(WHOLE).unwrap();
    assert!(configuration.serves("BarePost.TEST"));
    assert!(!configuration.serves("barepost.tes"));
}

#[test]
fn a_password_is_never_printed() {
    assert!(!format!("{:?}", Configuration::parse(WHOLE).unwrap()).contains("a plain one"));
}

#[test]
fn malformed_toml_is_rejected_with_its_line() {
    refused("hostname = 'a.test'\ndomains = [\n", 2, "unclosed array", "`]`");
    refused("hostname = 'a.test\n", 1, "invalid literal string", "`'`");
    refused("hostname = 'a.test'\nhostname = 'b.test'\n", 2, "duplicate key", "");
}

#[test]
fn a_missing_key_is_named() {
    refused("domains = ['a.test']\n", 2, "`hostname` is missing", "such as \"mail.example.org\"");
    refused("hostname = 'mail.a.test'\n", 2, "`domains` is missing", "such as [\"example.org\"]");
}

#[test]
fn an_unknown_key_error_suggests_the_nearest_known_key() {
    refused(
        &with_root("hostnam = 'b.test'"),
        3,
        "`hostnam` is not a valid key in the file",
        "`hostname`",
    );
    refused(&with_user("pasword = 'x'"), 5, "`pasword` is not a valid key in user", "`password`");
    refused(
        &with_access("unthrotled_from = []"),
        4,
        "`unthrotled_from` is not a valid key in access",
        "`unthrottled_from`",
    );
    refused(
        &with_network("address = '10.0.0.2/24'\nmtu = 9000"),
        5,
        "`mtu` is not a valid key",
        "one of `address`, `gateway`",
    );
}

#[test]
fn the_first_error_in_the_file_is_reported() {
    refused(&with_root("zebra = 1\napple = 1"), 3, "`zebra`", "one of");
}

#[test]
fn web_settings_are_parsed() {
    let web = |section: &str| Configuration::parse(&with_root(section)).unwrap().web;
    assert_eq!(web(""), WebSettings::default());
    assert_eq!(
        web("[web]\nsite = 'site/'"),
        WebSettings { site: Some("site/".into()), ..WebSettings::default() }
    );
    assert_eq!(
        web("[web]\naccess_log = true"),
        WebSettings { access_log: true, ..WebSettings::default() }
    );
    let policy = WebSettings { mta_sts: Some(PolicyMode::Testing), ..WebSettings::default() };
    assert_eq!(web("[web]\nmta_sts = 'testing'"), policy);
    refused(
        &with_root("[web]\nmta_sts = 'on'"),
        4,
        "`on`: this is not a valid mode",
        "\"enforce\"",
    );
    refused(&with_root("[web]\nsite = ''"), 4, "empty", "the folder of the site's files");
    assert_eq!(
        web("[web]\nhttps_only = true"),
        WebSettings { https_only: true, ..WebSettings::default() }
    );
    refused(
        &with_root("[web]\nhttps_only = 1"),
        4,
        "the value has the wrong type, integer",
        "true or false",
    );
    refused(&with_root("[web]\nsites = 'a'"), 4, "`sites` is not a valid key", "`site`");
}

#[test]
fn a_value_of_another_type_is_rejected() {
    refused("hostname = 25\n", 1, "the value has the wrong type, integer", "a full name");
    refused(
        "hostname = 'm.a.test'\ndomains = 'a.test'\n",
        2,
        "the value has the wrong type, string",
        "a list of domain names",
    );
    refused(
        "hostname = 'm.a.test'\ndomains = ['a.test', 1]\n",
        2,
        "the value has the wrong type, integer",
        "a full name",
    );
    refused(
        &with_root("user = 1"),
        3,
        "the value has the wrong type, integer",
        "sections `[[user]]`",
    );
    refused(&with_root("[user]"), 3, "the value has the wrong type, table", "sections `[[user]]`");
    refused(
        &with_root("access = []"),
        3,
        "the value has the wrong type, array",
        "a section `[access]`",
    );
    refused(
        &with_user("password = 'lovelace'\nadmin = 'yes'"),
        6,
        "the value has the wrong type, string",
        "true or false",
    );
}

#[test]
fn an_invalid_host_name_is_rejected() {
    let long_label = format!("{}.test", "a".repeat(64));
    let long_name = vec!["abcdefg"; 40].join(".");
    for (name, what) in [
        ("", "the name is empty"),
        ("mail", "the name contains no dot"),
        ("mail..test", "a dot too many"),
        ("mail.test.", "a dot too many"),
        ("-mail.test", "starts or ends with a hyphen"),
        ("ma_il.test", "a character that is not allowed in host names"),
        ("mäil.test", "xn--bcher-kva.example"),
        ("10.0.0.1", "a number, not a name"),
        (long_label.as_str(), "a label longer than 63"),
        (long_name.as_str(), "longer than 253"),
    ] {
        refused(
            &format!("# a comment\nhostname = '{name}'\ndomains = ['a.test']\n"),
            2,
            what,
            "a full name",
        );
    }
}

#[test]
fn domains_must_be_present_and_unique() {
    refused(
        "hostname = 'm.a.test'\ndomains = []\n",
        2,
        "the list of domains is empty",
        "at least one domain",
    );
    refused(
        "hostname = 'm.a.test'\ndomains = ['a.test',\n 'A.test']\n",
        3,
        "a domain is listed twice",
        "once",
    );
}

#[test]
fn an_address_must_be_well_formed() {
    for (address, what) in [
        ("ada", "contains no @"),
        ("@a.test", "the part before the @ is empty"),
        (".ada@a.test", "a dot too many"),
        ("a..da@a.test", "a dot too many"),
        ("a da@a.test", "a character that is not allowed"),
        ("a\"da@a.test", "a character that is not allowed"),
        ("a@da@a.test", "a character that is not allowed"),
        ("ada@localhost", "the part after the @ is not a domain"),
        ("ada@bücher.test", "xn--bcher-kva.example"),
    ] {
        let text = with_root(&format!("[[user]]\npassword = 'lovelace'\naddress = '{address}'"));
        refused(&text, 5, what, "an address, such as");
    }
    let text = with_root(
        "[[user]]\npassword = 'lovelace'\naddress = 'Łucja.O\\u0027Neil@a.test'"
            .replace("\\u0027", "+")
            .as_str(),
    );
    assert_eq!(
        Configuration::parse(&text).unwrap().users[0].address.as_str(),
        "łucja.o+neil@a.test"
    );
}

#[test]
fn an_address_must_belong_to_one_of_the_domains() {
    let text = with_root("[[user]]\naddress = 'ada@b.test'\npassword = 'lovelace'");
    refused(&text, 4, "`b.test` is not one of the domains", "a domain that `domains` names");
    let text = with_user("password = 'lovelace'\naliases = [\n 'info@a.test',\n 'info@b.test']");
    refused(&text, 8, "`b.test` is not one of the domains", "a domain that `domains` names");
}

#[test]
fn aliases_of_an_account_have_a_limited_length() {
    let with_aliases = |count: usize| {
        let names: Vec<_> = (0..count).map(|number| format!("'{number:064}@a.test'")).collect();
        with_user(&format!("password = 'lovelace'\naliases = [{}]", names.join(", ")))
    };
    assert!(Configuration::parse(&with_aliases(39)).is_ok());
    refused(&with_aliases(40), 6, "the aliases are too long", "2800 bytes");
}

#[test]
fn an_address_belongs_to_one_account_only() {
    let again = "password = 'lovelace'\n[[user]]\naddress = 'ADA@a.test'\npassword = 'countess'";
    refused(&with_user(again), 7, "`ada@a.test` is used twice", "no other account has");
    let alias = "password = 'lovelace'\n[[user]]\naddress = 'grace@a.test'\npassword = 'countess'\naliases = ['ada@a.test']";
    refused(&with_user(alias), 9, "`ada@a.test` is used twice", "no other account has");
    refused(
        &with_user("password = 'lovelace'\naliases = ['ada@a.test']"),
        6,
        "`ada@a.test` is used twice",
        "no other account has",
    );
}

#[test]
fn the_name_of_the_reserved_account_is_no_alias() {
    let alias = "password = 'lovelace'\naliases = ['Kept-for-postmaster@a.test']";
    let wrong = "`kept-for-postmaster@a.test` is kept for mail from the time without users";
    refused(&with_user(alias), 6, wrong, "another alias, or a user with this address");
    let user = "password = 'lovelace'\n[[user]]\naddress = 'kept-for-postmaster@a.test'\n\
                password = 'countess'";
    assert!(Configuration::parse(&with_user(user)).is_ok());
}

#[test]
fn a_domain_has_one_catch_all_account() {
    let text = with_user("password = 'lovelace'\ncatch_all = ['b.test']");
    refused(&text, 6, "`b.test` is not one of the domains", "a domain that `domains` names");
    let twice = "password = 'lovelace'\ncatch_all = ['A.test']\n[[user]]\naddress = 'grace@a.test'\npassword = 'countess'\ncatch_all = ['a.test']";
    refused(&with_user(twice), 10, "`a.test` has two catch-all accounts", "one catch-all account");
    let once =
        Configuration::parse(&with_user("password = 'lovelace'\ncatch_all = ['A.test']")).unwrap();
    assert_eq!(
        once.users.first().map(|user| user.catch_all.as_slice()),
        Some(once.domains.as_slice())
    );
}

#[test]
fn an_account_has_exactly_one_password_that_a_client_can_send() {
    refused(&with_user(""), 3, "the account has no password", "`password` or `password_hash`");
    refused(&with_user("password = ''"), 5, "the password is empty", "at least one character");
    refused(&with_user("password = \"a\\nb\""), 5, "a control character", "no control characters");
    for short in ["x", "hopper7", "7 ä€ßöü"] {
        refused(
            &with_user(&format!("password = '{short}'")),
            5,
            "the password is too short",
            "at least 8 characters",
        );
    }
    Configuration::parse(&with_user("password = '8 ä€ßöüx'")).unwrap();
    refused(
        &with_user(&format!("password = '{}'", "x".repeat(201))),
        5,
        "the password is too long",
        "at most 200",
    );
    refused(
        &with_user("password = 'x'\npassword_hash = 'y'"),
        6,
        "both `password` and `password_hash`",
        "one of the two",
    );
}

#[test]
fn a_hash_must_be_argon2id_and_cheap_enough_to_check() {
    const SALT_AND_HASH: &str =
        "c29tZXNhbHRzb21lc2FsdA$4x0SWUhwAkvSPcWYL6FYLzDtcyMOW9ezJ5LRZr/0XW0";
    let hash = |start: &str| with_user(&format!("password_hash = '{start}{SALT_AND_HASH}'"));
    assert!(Configuration::parse(&hash("$argon2id$v=19$m=65536,t=3,p=4$")).is_ok());
    refused(
        &with_user("password_hash = 'secret'"),
        5,
        "this is not a password hash",
        "an argon2id hash",
    );
    refused(&hash("$argon2i$v=19$m=4096,t=3,p=1$"), 5, "not an argon2id hash", "an argon2id hash");
    refused(&hash("$scrypt$ln=16,r=8,p=1$"), 5, "not an argon2id hash", "an argon2id hash");
    refused(&hash("$argon2id$v=19$m=1,t=2,p=1$"), 5, "not a password hash", "an argon2id hash");
    refused(
        &hash("$argon2id$v=19$m=1048576,t=2,p=1$"),
        5,
        "takes too much memory",
        "at most m=65536",
    );
    refused(
        &hash("$argon2id$v=19$m=19456,t=99,p=1$"),
        5,
        "takes too much memory",
        "m times t at most 262144",
    );
    let without_result =
        with_user("password_hash = '$argon2id$v=19$m=4096,t=3,p=1$c29tZXNhbHRzb21lc2FsdA'");
    refused(&without_result, 5, "not a password hash", "an argon2id hash");
}

#[test]
fn a_prefix_must_be_well_formed() {
    for (prefix, what) in [
        ("10.0.2.0", "the length of the prefix is missing"),
        ("10.0.2/24", "before the / is not an address"),
        ("10.0.2.0/33", "not a number from 0 to 32"),
        ("10.0.2.0/+8", "not a number from 0 to 32"),
        ("fe80::/129", "not a number from 0 to 128"),
        ("10.0.2.15/24", "bits set after the prefix"),
    ] {
        refused(
            &with_access(&format!("plaintext_auth_from = ['{prefix}']")),
            4,
            what,
            "a prefix, such as",
        );
    }
    refused(
        &with_access("unthrottled_from = ['10.0.0.0/8', '10.0.0.0/8']"),
        4,
        "a prefix is listed twice",
        "once",
    );
}

#[test]
fn the_machines_address_must_be_a_host_address() {
    for (address, what) in [
        ("10.0.0.2", "the length of the prefix is missing"),
        ("10.0.0.0/24", "the address of the network"),
        ("10.0.0.255/24", "broadcast address"),
        ("127.0.0.1/8", "not the address of a host"),
        ("224.0.0.1/4", "not the address of a host"),
        ("10.0.0.2/0", "not the address of a host"),
        ("2001:db8::/64", "the address of the network's routers"),
        ("fe80::2/64", "link-local addresses are assigned automatically"),
        ("::1/128", "not the address of a host"),
        ("::ffff:10.0.0.2/128", "not the address of a host"),
        ("2001:db8::2/129", "not a number from 0 to 128"),
    ] {
        refused(&with_network(&format!("address = '{address}'")), 4, what, "the machine's address");
    }
    for address in
        ["10.0.0.0/31", "10.0.0.1/32", "10.0.0.254/24", "2001:db8::2/64", "2001:db8::/127"]
    {
        assert!(
            Configuration::parse(&with_network(&format!("address = '{address}'"))).is_ok(),
            "{address}"
        );
    }
    refused(
        &with_network("gateway = '10.0.0.1'"),
        3,
        "`address` is missing in network",
        "10.0.0.2/24",
    );
}

#[test]
fn dnssec_is_trusted_only_if_configured() {
    let is_trusted = |more: &str| {
        let text = with_network(&format!("address = '10.0.0.2/24'\n{more}"));
        Configuration::parse(&text).unwrap().network.unwrap().dnssec
    };
    assert!(is_trusted("dnssec = true") && !is_trusted("dnssec = false") && !is_trusted(""));
    refused(
        &with_network("address = '10.0.0.2/24'\ndnssec = 'yes'"),
        5,
        "the value has the wrong type, string",
        "true or false",
    );
}

#[test]
fn the_gateway_must_be_on_the_machines_network() {
    let gateway =
        |address: &str| with_network(&format!("address = '10.0.0.2/24'\ngateway = '{address}'"));
    refused(
        &gateway("10.0.1.1"),
        5,
        "the gateway is not on the machine's network",
        "an address within 10.0.0.2/24",
    );
    refused(
        &gateway("10.0.0.2"),
        5,
        "the gateway is the machine itself",
        "the address of the router",
    );
    refused(&gateway("router"), 5, "this is not an address", "the address of a host");
    refused(
        &gateway("2001:db8::1"),
        5,
        "no address of this family",
        "a gateway of another family, or an address of this one",
    );
    refused(
        &with_network("address = '10.0.0.2/24'\ndns = ['0.0.0.0']"),
        5,
        "not the address of a host",
        "10.0.0.1",
    );
    let five =
        "address = '10.0.0.2/24'\ndns = ['1.1.1.1',\n'1.1.1.2','1.1.1.3','1.1.1.4',\n'1.1.1.5']";
    refused(&with_network(five), 7, "the list is too long", "at most 4");
}

#[test]
fn both_families_may_have_their_addresses_and_gateways() {
    let both = "address = ['10.0.0.2/24', '2001:db8::2/64', 'fd00::2/48']\ngateway = ['fe80::1', '10.0.0.1']";
    let network = Configuration::parse(&with_network(both)).unwrap().network.unwrap();
    assert_eq!(network.addresses.len(), 3);
    assert_eq!(network.gateway, Some(Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!(network.ipv6_gateway, "fe80::1".parse().ok());

    let six = |rest: &str| with_network(&format!("address = '2001:db8::2/64'\n{rest}"));
    assert!(Configuration::parse(&six("gateway = '2001:db8::1'\ndns = ['2001:db8::53']")).is_ok());
    refused(
        &six("gateway = '2001:db8:1::1'"),
        5,
        "not on the machine's network",
        "an address within 2001:db8::2/64",
    );
    refused(
        &six("gateway = ['fe80::1', 'fe80::2']"),
        5,
        "more than one gateway of this family",
        "at most one gateway for each family",
    );
    refused(
        &with_network("address = ['10.0.0.2/24', '10.0.0.3/24']"),
        4,
        "more than one IPv4",
        "at most one IPv4 address",
    );
    refused(
        &with_network("address = ['fd00::2/64', 'fd00::2/64']"),
        4,
        "an address is listed twice",
        "once",
    );
    refused(&with_network("address = []"), 4, "the list of addresses is empty", "10.0.0.2/24");
    let five = "address = ['fd00::1/64', 'fd00::2/64', 'fd00::3/64', 'fd00::4/64',\n'fd00::5/64']";
    refused(&with_network(five), 5, "too many IPv6 addresses", "at most 4 IPv6 addresses");
}

#[test]
fn the_size_of_a_configuration_is_bounded() {
    refused(&"#".repeat(TEXT_BYTES_MAX + 1), 1, "the file is too long", "at most 1 MiB");
    let users: String = (0..=USERS_MAX)
        .map(|n| format!("[[user]]\naddress = 'u{n}@a.test'\npassword = 'lovelace'\n"))
        .collect();
    refused(&with_root(&users), 3 + 3 * USERS_MAX, "the list is too long", "at most 4096");
    let deep = format!("hostname = {}", "[".repeat(10_000));
    assert!(Configuration::parse(&deep).is_err());
}

#[test]
fn an_error_names_line_and_column_in_characters() {
    let error =
        Configuration::parse("hostname = 'mail.a.test'\ndomains = ['ä', 'x']\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 12));
    let error = Configuration::parse("hostname = 'mail.a.test'\r\ndomains = ['ä.test', 'x']\r\n")
        .unwrap_err();
    assert_eq!(error.line, 2);
    assert!(
        error
            .to_string()
            .starts_with("2:12: `ä.test`: an international domain name must be in its DNS form")
    );
}

#[test]
fn an_error_is_one_line_with_escaped_control_characters() {
    let escapes = r#"hostname = 'mail.a.test'
domains = ["a\n\u001b[2J\u009b.test"]"#;
    let error = Configuration::parse(escapes).unwrap_err();
    assert!(error.what.starts_with(r"`a\n\u{1b}[2J\u{9b}.test`"), "{error}");
    assert!(!error.to_string().contains(char::is_control));
}

#[test]
fn certificates_and_keys_are_named_with_their_places() {
    let text = with_root(
        "[[tls]]\ncertificate = 'a.pem'\nkey = 'a.key'\n[[tls]]\ncertificate = 'b.pem'\nkey = 'b.key'",
    );
    let found = Configuration::parse(&text).unwrap().certificates;
    let found: Vec<_> = found
        .iter()
        .flat_map(|one| [&one.certificate, &one.key])
        .map(|file| (file.name.as_str(), file.line, file.column))
        .collect();
    assert_eq!(found, [("a.pem", 4, 15), ("a.key", 5, 7), ("b.pem", 7, 15), ("b.key", 8, 7)]);
    refused(
        &with_root("[[tls]]\ncertificate = 'a.pem'"),
        3,
        "`key` is missing in tls",
        "private key",
    );
    refused(&with_root("[[tls]]\nkey = 'a.pem'"), 3, "`certificate` is missing in tls", "cert.pem");
    refused(
        &with_root("[[tls]]\ncertificate = ''\nkey = 'a'"),
        4,
        "the name of the file is empty",
        "cert.pem",
    );
    refused(
        &with_root("[[tls]]\ncertificate = 'a'\nkey = 1"),
        5,
        "the value has the wrong type, integer",
        "private key",
    );
    refused(
        &with_root("[[tls]]\ncertificate = 'a'\nkeys = 'a'"),
        5,
        "`keys` is not a valid key in tls",
        "`key`",
    );
    refused(
        &with_root(&"[[tls]]\ncertificate = 'a'\nkey = 'b'\n".repeat(17)),
        51,
        "the list is too long",
        "at most 16",
    );
}

#[test]
fn forwarding_keeps_a_copy_unless_disabled() {
    let parsed =
        |rest: &str| Configuration::parse(&with_user(&format!("password = 'lovelace'\n{rest}")));
    let forwarding = |rest: &str| parsed(rest).expect("it is right").users[0].forwarding.clone();
    let addresses = ["bob@far.test", "grace@a.test"]
        .map(|address| MailAddress::parse(address).expect("an address"));
    let expected = |keep| Some(Forwarding { addresses: addresses.to_vec(), keep });
    let list = "forward = ['bob@Far.test', 'grace@a.test']";
    assert_eq!(forwarding(""), None);
    assert_eq!(forwarding(list), expected(Keep::Copy));
    assert_eq!(forwarding(&format!("{list}\nkeep = true")), expected(Keep::Copy));
    assert_eq!(forwarding(&format!("{list}\nkeep = false")), expected(Keep::Nothing));
    let many: String = (0..=FORWARDS_MAX).map(|number| format!("'{number}@far.test', ")).collect();
    for (wrong, what) in [
        ("keep = false", "no effect without"),
        ("forward = []", "forwarding addresses is empty"),
        ("forward = ['bob']", "`bob`"),
        ("forward = ['bob@far.test', 'BOB@far.test']", "listed twice"),
        ("forward = ['Ada@a.test']", "to the account itself"),
        ("aliases = ['lady@a.test']\nforward = ['lady@a.test']", "to the account itself"),
        (&format!("forward = [{many}]"), "the list is too long"),
    ] {
        refused(
            &with_user(&format!("password = 'lovelace'\n{wrong}")),
            5 + wrong.matches('\n').count() + 1,
            what,
            "",
        );
    }
}

#[test]
fn daily_limits_may_be_global_or_per_account() {
    let text = with_root(
        "[limits]\nmessages_per_day = 1_000\n[[user]]\naddress = 'ada@a.test'\npassword = 'lovelace'\nnew_recipients_per_day = 'unlimited'",
    );
    let configuration = Configuration::parse(&text).unwrap();
    let Limits { messages_per_day, new_recipients_per_day, .. } = configuration.limits;
    assert_eq!((messages_per_day, new_recipients_per_day), (PerDay::Most(1000), PerDay::Most(500)));
    let ada = &configuration.users[0];
    assert_eq!((ada.messages_per_day, ada.new_recipients_per_day), (None, Some(PerDay::Unlimited)));
    assert_eq!(Limits::default().messages_per_day, PerDay::Most(2000));
    for wrong in ["0", "-1", "1_000_001", "99999999999", "1.5", "'1'", "'many'", "true", "0x10"] {
        let what = "`messages_per_day` is out of range";
        refused(
            &with_user(&format!("password = 'lovelace'\nmessages_per_day = {wrong}")),
            6,
            what,
            "1000000, or \"unlimited\"",
        );
        refused(
            &with_root(&format!("[limits]\nmessages_per_day = {wrong}")),
            4,
            what,
            "a number from 1",
        );
    }
    refused(
        &with_root("[limits]\nmessages_per_dy = 1"),
        4,
        "`messages_per_dy` is not a valid key",
        "`messages_per_day`",
    );
}

#[test]
fn quotas_may_be_global_or_per_account() {
    let text = with_root(
        "[limits]\nquota = '2G'\n[[user]]\naddress = 'ada@a.test'\npassword = 'lovelace'\nquota = '500M'",
    );
    let configuration = Configuration::parse(&text).expect("it is right");
    assert_eq!(configuration.limits.quota, Quota::Octets(2 << 30));
    assert_eq!(configuration.users[0].quota, Some(Quota::Octets(500 << 20)));
    let text = with_user("password = 'lovelace'\nquota = 'unlimited'");
    let configuration = Configuration::parse(&text).expect("it is right");
    assert_eq!(
        (configuration.limits.quota, configuration.users[0].quota),
        (Quota::HalfOfDisk, Some(Quota::Unlimited))
    );
    for (wrong, what) in [
        ("'2'", "the unit must be M, G or T"),
        ("'2GB'", "the unit must be M, G or T"),
        ("'G'", "number before the unit is missing"),
        ("'-1G'", "number before the unit is missing"),
        ("'1.5G'", "number before the unit is missing"),
        ("'0M'", "the size is too small"),
        ("'300T'", "larger than any disk"),
        ("'99999999999999999999T'", "number before the unit is missing"),
        ("2", "integer"),
    ] {
        refused(&with_user(&format!("password = 'lovelace'\nquota = {wrong}")), 6, what, "500M");
        refused(&with_root(&format!("[limits]\nquota = {wrong}")), 4, what, "unlimited");
    }
    refused(&with_root("[limits]\nquotas = '1G'"), 4, "`quotas` is not a valid key", "`quota`");
}

#[test]
fn a_disk_keeps_its_format_unless_configured() {
    let disk = |text: &str| Configuration::parse(&with_root(text)).unwrap().disk;
    assert_eq!(disk(""), DiskFormat::Kept);
    assert_eq!(disk("[disk]"), DiskFormat::Kept);
    assert_eq!(disk("[disk]\nformat = 4"), DiskFormat::Newest);
    for wrong in ["3", "5", "-4", "'4'", "true"] {
        refused(
            &with_root(&format!("[disk]\nformat = {wrong}")),
            4,
            "only be converted to format 4",
            "no `format`",
        );
    }
    refused(&with_root("[disk]\nformats = 4"), 4, "`formats` is not a valid key", "`format`");
}

/// Parses `text`, which must be rejected at `line`. The error must contain `what` and `expected`.
#[track_caller]
fn refused(text: &str, line: usize, what: &str, expected: &str) {
    let error = Configuration::parse(text).expect_err("the text is wrong");
    assert!(error.what.contains(what), "{what:?} is not in {error}");
    assert!(error.expected.contains(expected), "{expected:?} is not in {error}");
    assert_eq!(error.line, line, "{error}");
}

/// A valid file of two lines, followed by `rest`.
fn with_root(rest: &str) -> String {
    format!("hostname = 'mail.a.test'\ndomains = ['a.test']\n{rest}\n")
}

/// A valid file with an account, which has `rest` from line 5 on.
fn with_user(rest: &str) -> String {
    with_root(&format!("[[user]]\naddress = 'ada@a.test'\n{rest}"))
}

/// A valid file with a section `[network]`, which has `rest` from line 4 on.
fn with_network(rest: &str) -> String {
    with_root(&format!("[network]\n{rest}"))
}

/// A valid file with a section `[access]`, which has `rest` from line 4 on.
fn with_access(rest: &str) -> String {
    with_root(&format!("[access]\n{rest}"))
}

#[test]
fn dns_lists_are_parsed() {
    let parsed = Configuration::parse(&with_root(
        "[abuse]\ndnsbl = ['Zen.Spamhaus.org', 'b.test']\ndnswl = ['list.dnswl.org']",
    ));
    let abuse = parsed.unwrap().abuse;
    let names = |lists: &[HostName]| lists.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&abuse.dnsbl), ["zen.spamhaus.org", "b.test"]);
    assert_eq!(
        (names(&abuse.dnsbl_junk), names(&abuse.dnswl)),
        (vec![], vec!["list.dnswl.org".to_string()])
    );
    let with_abuse = |line: &str| with_root(&format!("[abuse]\n{line}"));
    refused(&with_abuse("dnsbl = ['zen']"), 4, "the name contains no dot", "a full name");
    refused(&with_abuse("dnsbl = 'zen.test'"), 4, "wrong type, string", "a list of domain names");
    refused(&with_abuse("dnsbl = ['a.test', 'a.test']"), 4, "a list is listed twice", "once");
    refused(
        &with_abuse("dnswl = ['a.b', 'c.d', 'e.f', 'g.h', 'i.j']"),
        4,
        "the list is too long",
        "at most 4",
    );
    refused(
        &with_abuse("rbl = ['a.test']"),
        4,
        "`rbl` is not a valid key in abuse",
        "one of `dnsbl`",
    );
    let long = ["x".repeat(63), "y".repeat(63), "z".repeat(62)].join(".");
    refused(
        &with_abuse(&format!("dnsbl_junk = ['{long}']")),
        4,
        "the name is too long to look up an IPv6",
        "at most 189 characters",
    );
}

#[test]
fn trusted_arc_domains_are_empty_by_default() {
    let with_abuse = |line: &str| with_root(&format!("[abuse]\n{line}"));
    let trusted = |line: &str| Configuration::parse(&with_abuse(line)).unwrap().abuse.trusted_arc;
    assert_eq!(trusted(""), []);
    let two = trusted("trusted_arc = ['Lists.Example.org', 'b.test']");
    assert_eq!(
        two.iter().map(HostName::as_str).collect::<Vec<_>>(),
        ["lists.example.org", "b.test"]
    );
    refused(&with_abuse("trusted_arc = ['org']"), 4, "the name contains no dot", "a full name");
    refused(
        &with_abuse("trusted_arc = ['a.test', 'a.test']"),
        4,
        "a domain is listed twice",
        "once",
    );
    let many: Vec<String> = (0..65).map(|number| format!("'a{number}.test'")).collect();
    refused(
        &with_abuse(&format!("trusted_arc = [{}]", many.join(", "))),
        4,
        "the list is too long",
        "at most 64",
    );
}

#[test]
fn rate_limits_are_numbers() {
    let with_abuse = |line: &str| with_root(&format!("[abuse]\n{line}"));
    let limits = |line: &str| Configuration::parse(&with_abuse(line)).unwrap().abuse.limits;
    let usual = ClientLimits::default();
    assert_eq!(limits(""), usual);
    let all = "connections = 1\nclient_connections = 6\nconnections_a_minute = 2\nmessages_a_minute = 3\nrecipients_a_minute = 4_000\nunknown_recipients_an_hour = 0x5";
    let expected = ClientLimits {
        connections: 1,
        client_connections: 6,
        arrivals: 2,
        messages: 3,
        recipients: 4_000,
        guesses: 5,
    };
    assert_eq!(limits(all), expected);
    refused(&with_abuse("connections = 0"), 4, "0 is out of range", "a number from 1 to 65535");
    refused(&with_abuse("connections = -1"), 4, "-1 is out of range", "a number from 1 to 65535");
    refused(
        &with_abuse("connections = 65536"),
        4,
        "65536 is out of range",
        "a number from 1 to 65535",
    );
    refused(
        &with_abuse("connections = 'many'"),
        4,
        "wrong type, string",
        "a number from 1 to 65535",
    );
    refused(&with_abuse("messages = 5"), 4, "`messages` is not a valid key in abuse", "one of");
}

#[test]
fn the_greeting_delay_is_a_duration() {
    let with_abuse = |line: &str| with_root(&format!("[abuse]\n{line}"));
    let delay = |text: &str| {
        Configuration::parse(&with_root(text)).unwrap().abuse.greeting_delay.as_millis()
    };
    assert_eq!((delay(""), delay("[abuse]")), (1_000, 1_000));
    for (value, ms) in [("0s", 0), ("250ms", 250), ("20s", 20_000)] {
        assert_eq!(delay(&format!("[abuse]\ngreeting_delay = '{value}'")), ms);
    }
    for (value, what) in [
        ("2", "the unit must be ms, s, m or h"),
        ("2min", "the unit must be ms, s, m or h"),
        ("s", "number before the unit is missing"),
        ("+2s", "number before the unit is missing"),
        ("1m", "clients disconnect before that time"),
        ("25h", "longer than a day"),
        ("99999999999999999h", "longer than a day"),
    ] {
        let expected = if value == "1m" { "at most 20 s" } else { "a time, such as" };
        refused(&with_abuse(&format!("greeting_delay = '{value}'")), 4, what, expected);
    }
}

#[test]
fn the_greylisting_delay_is_off_by_default() {
    let with_abuse = |line: &str| with_root(&format!("[abuse]\n{line}"));
    let delay = |line: &str| {
        Configuration::parse(&with_abuse(line)).unwrap().abuse.greylist.map(Micros::as_secs)
    };
    assert_eq!(
        (delay(""), delay("greylist = '5m'"), delay("greylist = '6h'")),
        (None, Some(300), Some(21_600))
    );
    for value in ["0s", "999ms", "361m"] {
        refused(
            &with_abuse(&format!("greylist = '{value}'")),
            4,
            "no client would try again within that time",
            "from \"1s\" to \"6h\"",
        );
    }
}
