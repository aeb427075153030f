//! `barepost run`: builds the machine, boots it, and serves until somebody asks to stop.
//!
//! What can be refused is refused first, cheapest check first, and before anything boots: the ports or the tap
//! interface, the configuration, the disk, QEMU, the accelerator. Then the image is built and booted; or, hosted, the
//! engine starts in this process.

mod data;
mod ready;
mod serve;

pub(crate) use data::DataFolder;
pub(crate) use ready::watch as watch_services;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use crate::failure::Failure;
use crate::guest::{AcceleratorChoice, Guest, MachineType, Network, Setup};
use crate::hosted::Hosted;
use crate::house::House;
use crate::image;
use crate::packages;
use crate::services::{Reached, SERVICES, Service, base_max};
use crate::stop::Stop;
use crate::terminal::say;

/// How long a machine that was just killed may still hold what it had.
pub(crate) const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// The guest's address in QEMU's own network, where the forwarded ports lead.
const FORWARDED_TO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 15));

#[derive(Args)]
pub(crate) struct Options {
    /// Guest port P is reached at 127.0.0.1:(BASE+P)
    #[arg(long, value_name = "BASE", default_value_t = 20000)]
    ports: u16,
    /// Where disk.img and barepost.toml are; made with demo users on the first run
    #[arg(long, value_name = "DIR", default_value = "./data")]
    data: PathBuf,
    /// Processor cores of the machine
    #[arg(long, value_name = "N", default_value = "1", value_parser = one_core)]
    cores: u32,
    /// Memory of the machine, from 128M to 1024G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = memory_mib)]
    memory: u32,
    /// What runs the machine's instructions
    #[arg(long, value_enum, default_value_t = AcceleratorChoice::Auto)]
    accel: AcceleratorChoice,
    /// Which of QEMU's machines
    #[arg(long, value_enum, default_value_t = MachineType::Q35)]
    machine: MachineType,
    /// A tap interface of this host, in place of forwarded ports; the address is that of barepost.toml
    #[arg(long, value_name = "IF")]
    tap: Option<String>,
    /// The engine as a Linux process at the tap interface, in place of a machine in QEMU
    #[arg(long, requires = "tap", conflicts_with_all = ["ports", "accel", "machine"])]
    hosted: bool,
}

/// Errors: how the machine failed; stopping it when asked to is success.
pub(crate) fn run(house: &House, options: &Options, stop: &Stop) -> Result<(), Failure> {
    match &options.tap {
        Some(interface) if options.hosted => run_hosted(options, interface, stop),
        _ => run_guest(house, options, stop),
    }
}

/// The image in QEMU.
fn run_guest(house: &House, options: &Options, stop: &Stop) -> Result<(), Failure> {
    let network = network(options)?;
    let data = DataFolder::open(&options.data)?;
    check_reached(&network, data.configuration.network.as_ref())
        .map_err(|failure| Failure::refused(format_args!("{}: {failure}", data.configuration_path.display())))?;
    let qemu = packages::program("qemu-system-x86_64", "qemu-system-x86", stop)?;
    let accelerator = options.accel.choose(&qemu)?;
    let image = image::build(house, stop)?;
    let setup = Setup {
        qemu,
        image,
        machine: options.machine,
        accelerator,
        memory_mib: options.memory,
        network,
        disk: data.disk_path.clone(),
        configuration: data.configuration_path.clone(),
        site: data.site_path.clone(),
        plugin: None,
        linux: None,
    };
    let services = match &setup.network {
        Network::User { base } => SERVICES.iter().map(|service| (*service, service.forwarded(*base))).collect(),
        Network::Tap { .. } => services_on_tap(&data),
    };
    announce(&format!("{} under {}", setup.machine, setup.accelerator), options, &services, &data);
    if stop.is_requested() {
        return Ok(());
    }
    data.pass_lock_on()?;
    let guest = Guest::start(&setup)?;
    serve::serve(guest, &watch_services(services), stop)
}

/// The engine in this process.
fn run_hosted(options: &Options, interface: &str, stop: &Stop) -> Result<(), Failure> {
    let tap = Hosted::attach(interface)?;
    let data = DataFolder::open(&options.data)?;
    let services = services_on_tap(&data);
    announce(&format!("hosted on {interface}"), options, &services, &data);
    if stop.is_requested() {
        return Ok(());
    }
    let machine = Hosted::start(tap, &data, options.memory)?;
    serve::serve(machine, &watch_services(services), stop)
}

/// `machine`: what it is and where it runs.
fn announce(machine: &str, options: &Options, services: &[(Service, SocketAddr)], data: &DataFolder) {
    let folder = data.disk_path.parent().unwrap_or(Path::new("."));
    say(format_args!("barepost: {machine}, {} MiB, data in {}", options.memory, folder.display()));
    for (service, address) in services {
        say(format_args!("barepost: {} at {address}", service.name));
    }
    if data.is_demo {
        say("barepost: demo users ada@barepost.test, password lovelace; grace@barepost.test, password hopper");
    }
}

/// Errors: refused when a port is taken or the interface is no tap.
fn network(options: &Options) -> Result<Network, Failure> {
    match &options.tap {
        Some(interface) => {
            if !Path::new("/sys/class/net").join(interface).join("tun_flags").exists() {
                return Err(Failure::refused(format_args!(
                    "--tap {interface}: there is no such tap interface (ip tuntap add dev {interface} mode tap)"
                )));
            }
            Ok(Network::Tap { interface: interface.clone() })
        }
        None => {
            let base = options.ports;
            if base > base_max() {
                return Err(Failure::refused(format_args!("--ports {base}: the highest BASE is {}", base_max())));
            }
            SERVICES.iter().try_for_each(|service| check_free(service, base))?;
            Ok(Network::User { base })
        }
    }
}

/// QEMU forwards ports to one address only, the first that its own DHCP server gives.
///
/// Errors: refused when the machine is to have another one, under which nobody would ever reach it.
fn check_reached(network: &Network, configured: Option<&server::configuration::Network>) -> Result<(), Failure> {
    let (Network::User { .. }, Some(configured)) = (network, configured) else { return Ok(()) };
    if configured.addresses.iter().any(|own| own.address == FORWARDED_TO) {
        return Ok(());
    }
    let own: Vec<String> = configured.addresses.iter().map(|own| own.address.to_string()).collect();
    Err(Failure::refused(format_args!(
        "[network]: ports are forwarded to {FORWARDED_TO}, not to {}; remove the section, or use --tap",
        own.join(", ")
    )))
}

/// A machine that was just killed may take a moment to give its ports back.
fn check_free(service: &Service, base: u16) -> Result<(), Failure> {
    let address = service.forwarded(base);
    let started = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::AddrInUse && started.elapsed() < LEAVE_PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => {
                return Err(Failure::refused(format_args!(
                    "{address}, for {} with --ports {base}, cannot be had ({error}); choose another BASE",
                    service.name
                )));
            }
        }
    }
}

/// Where the services are reached on a tap interface; none are known in advance with DHCP.
fn services_on_tap(data: &DataFolder) -> Vec<(Service, SocketAddr)> {
    let network = data.configuration.network.as_ref();
    let own_address = network.and_then(|network| network.addresses.first()).map(|own| own.address);
    let at = |service: &Service| own_address.map(|address| (*service, SocketAddr::new(address, service.port)));
    SERVICES.iter().filter_map(at).collect()
}

fn one_core(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(1) => Ok(1),
        Ok(2..) => Err("this version serves on one core only".into()),
        _ => Err("expected a number of cores".into()),
    }
}

/// In MiB, from a number with the unit M or G.
fn memory_mib(text: &str) -> Result<u32, String> {
    let (number, unit) = match text.strip_suffix(['G', 'g']) {
        Some(number) => (number, 1024),
        None => (text.strip_suffix(['M', 'm']).ok_or("expected a size such as 256M or 1G")?, 1),
    };
    let size: Option<u32> = number.parse().ok().and_then(|number: u32| number.checked_mul(unit));
    match size {
        Some(mib @ 128..=1_048_576) => Ok(mib),
        _ => Err("expected a size from 128M to 1024G".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_in_mebibytes_or_gibibytes() {
        assert_eq!(memory_mib("256M"), Ok(256));
        assert_eq!(memory_mib("2g"), Ok(2048));
        for wrong in ["256", "M", "1.5G", "16M", "-1G", "99999999G", "256MB"] {
            assert!(memory_mib(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_to_which_no_port_is_forwarded_is_refused() {
        let configured = |address: [u8; 4]| {
            let text = format!(
                "hostname = 'm.a.test'\ndomains = ['a.test']\n[network]\naddress = '{}/24'\n",
                Ipv4Addr::from(address)
            );
            server::configuration::Configuration::parse(&text).unwrap().network
        };
        let (user, tap) = (Network::User { base: 20000 }, Network::Tap { interface: "tap0".into() });
        let other = configured([10, 0, 0, 2]);
        let failure = check_reached(&user, other.as_ref()).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("not to 10.0.0.2") && failure.to_string().contains("--tap"), "{failure}");
        check_reached(&tap, other.as_ref()).unwrap();
        check_reached(&user, configured([10, 0, 2, 15]).as_ref()).unwrap();
        check_reached(&user, None).unwrap();
    }

    #[test]
    fn a_taken_port_is_named_with_its_base() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let service = SERVICES[0];
        let failure = check_free(&service, port - service.port).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains(&port.to_string()), "{failure}");
        assert!(failure.to_string().contains(&format!("--ports {}", port - service.port)), "{failure}");
        drop(listener);
        check_free(&service, port - service.port).unwrap();
    }
}
