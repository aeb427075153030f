//! `barepost run`: builds the machine, boots it, and serves until it is asked to stop.
//!
//! All checks are done before the machine boots, and the cheapest is the first: the ports or the
//! tap interface, the configuration, the disk, QEMU, the accelerator. Then the image is built and
//! booted. With `--hosted` the engine starts in this process instead.

mod access;
mod authorities;
mod certificates;
mod data;
mod demo;
mod disk_file;
mod hosting;
mod ready;
mod serve;
mod signing;

use access::Way;
pub use data::DataFolder;
use data::Terms;
pub(crate) use data::read_configuration;
use disk_file::MissingDisk;
pub use hosting::{Hosting, NotHosted};
pub use ready::watch as watch_services;
pub(crate) use signing::keys as signing_keys;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use host::{Failure, Repository, Stop, image, packages, say};

use crate::guest::{AcceleratorChoice, Guest, MachineType, Network, Setup};
use crate::services::{Reached, SERVICES, Service, base_max};
use configuration::Configuration;

/// The longest time for which a killed machine may still hold its resources.
pub const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// The memory in MiB that every guest needs apart from its engines, its site and its cores' stacks.
/// The stacks of a core need 1 MiB.
const GUEST_OWN_MIB: u64 = 12;
/// The default memory of a machine, unless its cores and site need more.
const USUAL_MEMORY_MIB: u32 = 256;
/// The guest's address in QEMU's own network, the target of the forwarded ports.
const FORWARDED_TO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 15));

#[derive(Args)]
pub(crate) struct Options {
    /// Port P of the machine is available at 127.0.0.1:(BASE+P)
    #[arg(long, value_name = "BASE", default_value_t = 20000)]
    ports: u16,
    /// Folder with disk.img and barepost.toml; created with demo users on the first run
    #[arg(long, value_name = "DIR", default_value = "./data")]
    data: PathBuf,
    /// Create a new, empty disk if disk.img is missing, even if this folder has been used
    /// before
    #[arg(long)]
    new: bool,
    /// Processor cores of the machine, from 1 to 16; each uses a queue of a tap interface that was
    /// created with `multi_queue`
    #[arg(long, value_name = "N", default_value = "1", value_parser = cores)]
    cores: u32,
    /// Memory of the machine, from 128M to 1024G [default: 256M, or more if the cores and the site
    /// need it]
    #[arg(long, value_name = "SIZE", value_parser = memory_mib)]
    memory: Option<u32>,
    /// The accelerator of QEMU
    #[arg(long, value_enum, default_value_t = AcceleratorChoice::Auto)]
    accel: AcceleratorChoice,
    /// The machine type of QEMU
    #[arg(long, value_enum, default_value_t = MachineType::Q35)]
    machine: MachineType,
    /// Use this tap interface of the host instead of forwarded ports; the address comes from
    /// barepost.toml
    #[arg(long, value_name = "IF")]
    tap: Option<String>,
    /// Run the server as a Linux process at the tap interface instead of a machine in QEMU
    #[arg(long, requires = "tap", conflicts_with_all = ["ports", "accel", "machine"])]
    hosted: bool,
}

/// Errors: the failure of the machine. A stop on request is a success.
pub(crate) fn run<H: Hosting>(
    repository: &Repository,
    options: &Options,
    stop: &Stop,
) -> Result<(), Failure> {
    match &options.tap {
        Some(interface) if options.hosted => run_hosted::<H>(options, interface, stop),
        _ => run_guest(repository, options, stop),
    }
}

/// Runs the image in QEMU.
fn run_guest(repository: &Repository, options: &Options, stop: &Stop) -> Result<(), Failure> {
    memory_for(options, own_mib(options, 0))?;
    let network = network(options)?;
    let data = open(options)?;
    let memory_mib = memory_for(options, own_mib(options, data.site_bytes()?))?;
    let qemu = packages::program("qemu-system-x86_64", "qemu-system-x86", stop)?;
    let accelerator = options.accel.choose(&qemu)?;
    let image = image::build(repository, stop)?;
    let setup = Setup {
        qemu,
        image,
        machine: options.machine,
        accelerator,
        cores: options.cores,
        memory_mib,
        network,
        files: data.files(),
        plugin: None,
        linux: None,
    };
    let services = match &setup.network {
        Network::User { base } => {
            SERVICES.iter().map(|service| (*service, service.forwarded(*base))).collect()
        }
        Network::Tap { .. } => services_on_tap(&data),
    };
    let machine = format!("{} under {}", setup.machine, setup.accelerator);
    announce(&machine, (options.cores, memory_mib), &services, &data);
    if stop.is_requested() {
        return Ok(());
    }
    data.pass_lock_on()?;
    let guest = Guest::start(&setup)?;
    serve::serve(guest, &watch_services(services), stop)
}

/// Runs the engine in this process.
fn run_hosted<H: Hosting>(options: &Options, interface: &str, stop: &Stop) -> Result<(), Failure> {
    let memory_mib = memory_for(options, 0)?;
    let cores = options.cores as u8;
    let taps = H::attach(interface, cores)?;
    let data = open(options)?;
    let services = services_on_tap(&data);
    announce(&format!("hosted on {interface}"), (options.cores, memory_mib), &services, &data);
    if stop.is_requested() {
        return Ok(());
    }
    let machine = H::start(taps, cores, &data, memory_mib)?;
    serve::serve(machine, &watch_services(services), stop)
}

/// Opens the data folder. Reports a new disk at once, because this run may fail later.
fn open(options: &Options) -> Result<DataFolder, Failure> {
    let way = if options.tap.is_some() { Way::Tap } else { Way::Forwarded };
    let configuration_path = options.data.join("barepost.toml");
    if way == Way::Tap && !configuration_path.exists() {
        return Err(Failure::refused(format_args!(
            "{}: there is no such file, and a demo configuration is only created for forwarded ports. Check --data, or create the file first",
            configuration_path.display()
        )));
    }
    let accepts = |configuration: &Configuration| {
        check_reached(way, configuration.network.as_ref())?;
        access::check(configuration, way)
    };
    let missing_disk = if options.new { MissingDisk::Make } else { MissingDisk::MakeOnFirstRun };
    let data = DataFolder::open_on(&Terms { missing_disk, accepts: &accepts }, &options.data)?;
    if let Some(bytes) = data.new_disk_bytes {
        say(format_args!(
            "barepost: created a new, empty disk of {} GiB: {}",
            bytes >> 30,
            data.disk_path.display()
        ));
    }
    Ok(data)
}

/// The machine's memory in MiB: the value of `--memory`, or the default, or more if the cores and
/// the site need it. `own_mib`: the part that the engines do not get.
///
/// Errors: [`Failure::refused`] if `--memory` is less than the engines and `own_mib` need.
fn memory_for(options: &Options, own_mib: u64) -> Result<u32, Failure> {
    let Options { cores, memory, .. } = options;
    let needed_mib = (configuration::memory_bytes_min(*cores as u8) >> 20).saturating_add(own_mib);
    let usual_mib = u32::try_from(needed_mib).unwrap_or(u32::MAX).max(USUAL_MEMORY_MIB);
    let memory = memory.unwrap_or(usual_mib);
    if u64::from(memory) >= needed_mib {
        return Ok(memory);
    }
    let cores = if *cores > 1 { format!("{cores} cores need") } else { "one core needs".into() };
    Err(Failure::refused(format_args!("--memory {memory}M: {cores} at least {needed_mib}M")))
}

/// The guest memory in MiB that its engines do not get: for the firmware, the image, page tables,
/// the cores' stacks, and the packed site.
fn own_mib(options: &Options, site_bytes: u64) -> u64 {
    u64::from(options.cores)
        .saturating_add(GUEST_OWN_MIB)
        .saturating_add(site_bytes.div_ceil(1 << 20))
}

/// Prints the machine, its services and warnings. `machine`: its type and its accelerator.
fn announce(
    machine: &str,
    (cores, memory_mib): (u32, u32),
    services: &[(Service, SocketAddr)],
    data: &DataFolder,
) {
    let folder = data.disk_path.parent().unwrap_or(Path::new("."));
    let cores = if cores > 1 { format!("{cores} cores, ") } else { String::new() };
    say(format_args!("barepost: {machine}, {cores}{memory_mib} MiB, data in {}", folder.display()));
    for (service, address) in services {
        say(format_args!("barepost: {} at {address}", service.name));
    }
    for range in access::wide(&data.configuration) {
        say(format_args!("barepost: {}:{range}", data.configuration_path.display()));
    }
    if let Some(users) = &data.demo_users {
        say(format_args!("barepost: demo users {users}"));
    }
}

/// Errors: [`Failure::refused`] if a port is in use, if the interface is not a tap interface, or if
/// the number of its queues does not suit the machine.
fn network(options: &Options) -> Result<Network, Failure> {
    match &options.tap {
        Some(interface) => {
            let flags = Path::new("/sys/class/net").join(interface).join("tun_flags");
            let Ok(flags) = std::fs::read_to_string(flags) else {
                return Err(Failure::refused(format_args!(
                    "--tap {interface}: the tap interface does not exist (create it with: ip tuntap add dev {interface} mode tap)"
                )));
            };
            let queues = tap_queues(&flags, options.cores, options.machine)
                .map_err(|reason| Failure::refused(format_args!("--tap {interface}: {reason}")))?;
            Ok(Network::Tap { interface: interface.clone(), queues })
        }
        None => {
            let base = options.ports;
            if base > base_max() {
                return Err(Failure::refused(format_args!(
                    "--ports {base}: the highest BASE is {}",
                    base_max()
                )));
            }
            SERVICES.iter().try_for_each(|service| check_free(service, base))?;
            Ok(Network::User { base })
        }
    }
}

/// The number of a tap interface's queues that the machine uses. It is one for each core if the
/// interface was created with `multi_queue`. Otherwise the interface has one queue, and the first
/// core distributes its packets to the other cores.
///
/// `flags`: as Linux reports them. Errors: the interface has several queues, the machine only one.
fn tap_queues(flags: &str, cores: u32, machine: MachineType) -> Result<u32, &'static str> {
    const MULTI_QUEUE: u32 = 0x100;
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(0);
    match (flags & MULTI_QUEUE != 0, machine) {
        (false, _) => Ok(1),
        (true, MachineType::Q35) if cores > 1 => Ok(cores),
        (true, MachineType::Q35) => {
            Err("it was created with multi_queue, which needs several cores (--cores)")
        }
        (true, MachineType::Microvm) => Err(
            "it was created with multi_queue, but a microvm has only one queue: create it without multi_queue, or use --machine q35",
        ),
    }
}

/// Checks that forwarded ports reach the machine. QEMU forwards ports only to the first address of
/// its own DHCP server.
///
/// Errors: the configured addresses do not include that address, so no client could connect.
fn check_reached(way: Way, configured: Option<&configuration::Network>) -> Result<(), String> {
    let (Way::Forwarded, Some(configured)) = (way, configured) else { return Ok(()) };
    if configured.addresses.iter().any(|own| own.address == FORWARDED_TO) {
        return Ok(());
    }
    let own: Vec<String> = configured.addresses.iter().map(|own| own.address.to_string()).collect();
    Err(format!(
        " [network]: ports are forwarded to {FORWARDED_TO}, not to {}; remove the section, or use --tap",
        own.join(", ")
    ))
}

/// Checks that the port is free. Retries for a while: a killed machine may still hold it.
fn check_free(service: &Service, base: u16) -> Result<(), Failure> {
    let address = service.forwarded(base);
    let started = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Ok(_) => return Ok(()),
            Err(error)
                if error.kind() == ErrorKind::AddrInUse && started.elapsed() < LEAVE_PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => {
                return Err(Failure::refused(format_args!(
                    "{address}, for {} with --ports {base}, is not available ({error}); choose another BASE",
                    service.name
                )));
            }
        }
    }
}

/// The addresses of the services on a tap interface. Empty with DHCP: the address is unknown.
fn services_on_tap(data: &DataFolder) -> Vec<(Service, SocketAddr)> {
    let network = data.configuration.network.as_ref();
    let own_address = network.and_then(|network| network.addresses.first()).map(|own| own.address);
    let at = |service: &Service| {
        own_address.map(|address| (*service, SocketAddr::new(address, service.port)))
    };
    SERVICES.iter().filter_map(at).collect()
}

fn cores(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(cores @ 1..=16) => Ok(cores),
        _ => Err("expected a number of cores from 1 to 16".into()),
    }
}

/// Parses a number with the unit M or G, to MiB.
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
    fn a_machine_has_one_to_sixteen_cores() {
        assert_eq!((cores("1"), cores("16")), (Ok(1), Ok(16)));
        for wrong in ["0", "17", "-1", "two", "", "1.5"] {
            assert!(cores(wrong).unwrap_err().contains("1 to 16"), "{wrong}");
        }
    }

    #[test]
    fn a_tap_interface_of_several_queues_gives_one_to_each_core() {
        let (single, multiple) = ("0x1002\n", "0x1102\n");
        assert_eq!(tap_queues(multiple, 4, MachineType::Q35), Ok(4));
        assert_eq!(tap_queues(single, 4, MachineType::Q35), Ok(1));
        assert_eq!(tap_queues(single, 4, MachineType::Microvm), Ok(1));
        assert_eq!(tap_queues(single, 1, MachineType::Q35), Ok(1));
        assert!(tap_queues(multiple, 1, MachineType::Q35).unwrap_err().contains("--cores"));
        assert!(tap_queues(multiple, 4, MachineType::Microvm).unwrap_err().contains("q35"));
    }

    #[test]
    fn memory_is_given_in_mebibytes_or_gibibytes() {
        assert_eq!(memory_mib("256M"), Ok(256));
        assert_eq!(memory_mib("2g"), Ok(2048));
        for wrong in ["256", "M", "1.5G", "16M", "-1G", "99999999G", "256MB"] {
            assert!(memory_mib(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn too_little_memory_is_refused_before_the_boot() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let checked = |arguments: &[&str], site_bytes: u64| {
            let line = Line::try_parse_from([&["run"], arguments].concat()).unwrap();
            memory_for(&line.options, own_mib(&line.options, site_bytes))
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(checked(&["--memory", "128M"], 0), Ok(128));
        let refused = checked(&["--memory", "129M", "--cores", "2"], 0).unwrap_err();
        assert_eq!(refused, "--memory 129M: 2 cores need at least 158M");
        assert_eq!(checked(&["--memory", "158M", "--cores", "2"], 0), Ok(158));
        let refused = checked(&["--memory", "128M"], 20 << 20).unwrap_err();
        assert_eq!(refused, "--memory 128M: one core needs at least 129M");
        let usual =
            [&[][..], &["--cores", "4"], &["--cores", "16"]].map(|cores| checked(cores, 1 << 20));
        assert_eq!(usual, [Ok(256), Ok(257), Ok(845)]);
    }

    #[test]
    fn address_without_forwarded_ports_is_refused() {
        let configured = |address: [u8; 4]| {
            let text = format!(
                "hostname = 'm.a.test'\ndomains = ['a.test']\n[network]\naddress = '{}/24'\n",
                Ipv4Addr::from(address)
            );
            configuration::Configuration::parse(&text).unwrap().network
        };
        let other = configured([10, 0, 0, 2]);
        let wrong = check_reached(Way::Forwarded, other.as_ref()).unwrap_err();
        assert!(wrong.contains("not to 10.0.0.2") && wrong.contains("--tap"), "{wrong}");
        check_reached(Way::Tap, other.as_ref()).unwrap();
        check_reached(Way::Forwarded, configured([10, 0, 2, 15]).as_ref()).unwrap();
        check_reached(Way::Forwarded, None).unwrap();
    }

    #[test]
    fn a_taken_port_is_named_with_its_base() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let service = SERVICES[0];
        let failure = check_free(&service, port - service.port).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains(&port.to_string()), "{failure}");
        assert!(
            failure.to_string().contains(&format!("--ports {}", port - service.port)),
            "{failure}"
        );
        drop(listener);
        check_free(&service, port - service.port).unwrap();
    }
}
