//! Checks the address ranges of `[access]`. A range that suits only forwarded ports is refused on
//! other machines, and wide ranges are reported.
//!
//! All connections through forwarded ports have the same source address in QEMU's own network. So a
//! range for this network trusts every client, and suits only a demo.

use std::net::IpAddr;

use configuration::{AccessRange, Configuration};

/// QEMU's own network, as the demo's configuration contains it.
const QEMU_NETWORK: &str = "10.0.2.0/24";
/// The shortest prefixes that are not reported as wide.
const IPV4_PREFIX_MIN: u8 = 16;
const IPV6_PREFIX_MIN: u8 = 48;

/// The way in which clients reach the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Through ports that QEMU forwards.
    Forwarded,
    /// By a tap interface.
    Tap,
}

/// Errors: a range suits only the forwarded ports of a demo. The text begins with the line, like
/// all configuration errors.
pub(super) fn check(configuration: &Configuration, way: Way) -> Result<(), String> {
    let place = match way {
        Way::Tap => "a tap interface",
        Way::Forwarded if configuration.network.is_some() => "a machine with a [network] section",
        Way::Forwarded => return Ok(()),
    };
    match ranges(configuration).find(|(_, range)| range.prefix.to_string() == QEMU_NETWORK) {
        None => Ok(()),
        Some((key, AccessRange { line, .. })) => Err(format!(
            "{line}: {key} contains {QEMU_NETWORK}, which is only for the forwarded ports of the demo, but this is \
             {place}; use the range of your own clients instead, or remove it"
        )),
    }
}

/// A warning of one line for each wide range.
pub(super) fn wide(configuration: &Configuration) -> Vec<String> {
    let is_wide = |range: &AccessRange| match range.prefix.address() {
        IpAddr::V4(_) => range.prefix.length() < IPV4_PREFIX_MIN,
        IpAddr::V6(_) => range.prefix.length() < IPV6_PREFIX_MIN,
    };
    let said = |(key, AccessRange { prefix, line }): (&str, &AccessRange)| {
        let least = if prefix.address().is_ipv4() { IPV4_PREFIX_MIN } else { IPV6_PREFIX_MIN };
        format!(
            "{line}: {key} contains {prefix}, which is wider than a /{least}; make sure that the whole range is yours"
        )
    };
    ranges(configuration).filter(|(_, range)| is_wide(range)).map(said).collect()
}

/// All ranges, each with its configuration key.
fn ranges(configuration: &Configuration) -> impl Iterator<Item = (&'static str, &AccessRange)> {
    let access = &configuration.access;
    let plaintext = access.plaintext_auth_from.iter().map(|range| ("plaintext_auth_from", range));
    plaintext.chain(access.unthrottled_from.iter().map(|range| ("unthrottled_from", range)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(sections: &str) -> Configuration {
        Configuration::parse(&format!("hostname = 'mail.a.test'\ndomains = ['a.test']\n{sections}"))
            .unwrap()
    }

    #[test]
    fn range_of_forwarded_ports_is_refused_on_a_tap() {
        for key in ["plaintext_auth_from", "unthrottled_from"] {
            let demo =
                configuration(&format!("[access]\n{key} = [\n'10.0.0.0/24',\n'10.0.2.0/24']\n"));
            assert_eq!(check(&demo, Way::Forwarded), Ok(()));
            let wrong = check(&demo, Way::Tap).unwrap_err();
            assert!(
                wrong.starts_with(&format!("6: {key} contains 10.0.2.0/24"))
                    && wrong.contains("tap"),
                "{wrong}"
            );
        }
        let access =
            "[access]\nunthrottled_from = ['10.0.2.0/24']\n[network]\naddress = '10.0.2.15/24'\n";
        assert!(check(&configuration(access), Way::Forwarded).unwrap_err().contains("[network]"));
        let narrow = access.replace("10.0.2.0/24", "10.0.2.2/32");
        for way in [Way::Forwarded, Way::Tap] {
            assert_eq!(check(&configuration(&narrow), way), Ok(()));
        }
    }

    #[test]
    fn range_wider_than_a_16_or_a_48_is_reported() {
        let told = |range: &str| {
            wide(&configuration(&format!("[access]\nunthrottled_from = ['{range}']\n")))
        };
        for narrow in ["10.1.0.0/16", "192.0.2.1/32", "2001:db8::/48"] {
            assert_eq!(told(narrow), [""; 0], "{narrow}");
        }
        assert_eq!(
            told("10.0.0.0/15"),
            [
                "4: unthrottled_from contains 10.0.0.0/15, which is wider than a /16; make sure that the whole range is yours"
            ]
        );
        assert_eq!(
            told("2001:db8::/47"),
            [
                "4: unthrottled_from contains 2001:db8::/47, which is wider than a /48; make sure that the whole range is yours"
            ]
        );
        assert_eq!(
            wide(&configuration("[access]\nplaintext_auth_from = ['0.0.0.0/0', '::/0']\n")).len(),
            2
        );
    }
}
