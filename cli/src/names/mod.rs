//! `barepost dns`: prints the DNS records of the machine and its domains as lines of a zone file,
//! or checks that they are published.

mod asking;
mod check;
mod records;
mod requirements;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use configuration::Configuration;
use dkim::SigningKey;
use dns::{Name, NotAName, Question, Record, RecordKind, Unanswered};
use host::{Failure, Stop, remark, say};

use crate::run::{read_configuration, signing_keys};
use asking::Servers;
use check::{Finding, Senders};

/// The file with the name servers of this host (resolv.conf(5)).
const RESOLV_CONF: &str = "/etc/resolv.conf";

#[derive(Args)]
pub(crate) struct Options {
    /// Folder with barepost.toml and the DKIM signing keys; the keys are created if there
    /// are none
    #[arg(long, value_name = "DIR", default_value = "./data")]
    data: PathBuf,
    /// Public address of the machine; if none is given, the public addresses in barepost.toml are
    /// used
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<IpAddr>,
    /// Look up each record, and report which are missing or wrong, and why
    #[arg(long)]
    check: bool,
    /// The name server to ask, instead of those of this host
    #[arg(long, value_name = "ADDRESS", requires = "check")]
    server: Option<IpAddr>,
}

/// Errors: [`Failure::refused`] for a wrong configuration, [`Failure::Told`] for a missing or wrong
/// record.
pub(crate) fn run(options: &Options, stop: &Stop) -> Result<(), Failure> {
    let (_, configuration) = read_configuration(&options.data.join("barepost.toml"))?;
    let keys = signing_keys(&options.data, &configuration)?;
    let addresses = match &options.addresses[..] {
        [] => public_addresses(&configuration),
        named => named.to_vec(),
    };
    if options.check {
        check(&configuration, &keys, addresses, options.server, stop)
    } else {
        print(&configuration, &keys, &addresses)
    }
}

fn print(
    configuration: &Configuration,
    keys: &[SigningKey],
    addresses: &[IpAddr],
) -> Result<(), Failure> {
    if addresses.is_empty() {
        let host = configuration.hostname.as_str();
        remark(format_args!(
            "barepost: the public address of {host} is unknown; pass it with --address to get its records, too"
        ));
    }
    for wanted in records::wanted(configuration, keys, addresses).map_err(too_long)? {
        say(format_args!("; {}\n{wanted}", wanted.purpose));
    }
    requirements::lines().for_each(|line| say(format_args!("{line}")));
    Ok(())
}

fn check(
    configuration: &Configuration,
    keys: &[SigningKey],
    mut addresses: Vec<IpAddr>,
    server: Option<IpAddr>,
    stop: &Stop,
) -> Result<(), Failure> {
    let servers = match server {
        Some(server) => vec![server],
        None => asking::of_host(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default()),
    };
    if servers.is_empty() {
        return Err(Failure::refused(format_args!(
            "{RESOLV_CONF} contains no name server; pass one with --server"
        )));
    }
    let mut servers = Servers::new(&servers);
    let mut ask = |question| servers.ask(question);
    if addresses.is_empty() {
        let name = Name::parse(configuration.hostname.as_str()).map_err(too_long)?;
        for kind in [RecordKind::Ipv4, RecordKind::Ipv6] {
            let answer = ask(Question { name: name.clone(), kind })
                .map_err(|why| Failure::broke(format_args!("{name}.: {why}")))?;
            addresses.extend(answer.records.iter().filter_map(|record| match record {
                Record::Address(address) => Some(address),
                _ => None,
            }));
        }
    }
    let mut are_right = !addresses.is_empty();
    if !are_right {
        say(format_args!("missing  {}.: the name has no address", configuration.hostname.as_str()));
    }
    let smarthosts = check::addresses_of(&configuration.relay, &mut ask);
    let senders = Senders { own: &addresses, smarthosts: &smarthosts };
    for wanted in records::wanted(configuration, keys, &addresses).map_err(too_long)? {
        if stop.is_requested() {
            return Err(Failure::Told);
        }
        let finding = check::judge(&wanted, keys, &senders, &mut ask);
        if finding == Finding::Unknown(Unanswered::Silence) {
            // The next question would also fail, after the same wait.
            return Err(Failure::broke(finding.line(&wanted)));
        }
        say(finding.line(&wanted));
        are_right &= finding.is_right();
    }
    if are_right { Ok(()) } else { Err(Failure::Told) }
}

/// The machine's fixed addresses that are not private.
fn public_addresses(configuration: &Configuration) -> Vec<IpAddr> {
    let own =
        configuration.network.iter().flat_map(|network| &network.addresses).map(|own| own.address);
    own.filter(is_public).collect()
}

fn is_public(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !address.is_private() && !address.is_loopback() && !address.is_link_local()
        }
        IpAddr::V6(address) => {
            !address.is_unique_local() && !address.is_loopback() && !address.is_unicast_link_local()
        }
    }
}

fn too_long(NotAName: NotAName) -> Failure {
    Failure::refused("a domain name in the configuration is too long for the records below it")
}

#[cfg(test)]
mod tests {
    use dkim::SigningKey;

    /// An Ed25519 key.
    pub(super) fn key(selector: &str, number: u8) -> SigningKey {
        let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
        SigningKey::new(&[&head[..], &[number; 32]].concat(), selector).unwrap()
    }
}
