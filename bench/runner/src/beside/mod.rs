//! Two guests side by side: our image, and a peer in a Linux guest. Both run in the same QEMU
//! version with the same flags and the same card.
//!
//! Both run at the same time. Each guest has its own tap interface, and sleeps while it has no
//! work. They serve the same files or the same mail. Over TLS they use the same ECDSA P-256
//! certificate.

mod debian;
mod installed;
pub(super) mod mailboxes;
mod nginx;
mod postfix;
mod roundcube;
mod target;
mod wide;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use barepost::guest::{Accelerator, Event, Guest, Linux, MachineType, Network, Running, Setup};
use barepost::run::DataFolder;
use host::{Failure, Repository, Stop, image, packages};

use super::counters::Counters;
use super::network::ip;
use super::workplace::refuse_if_stopped;
use mailboxes::Account;
pub(super) use postfix::SETTINGS as POSTFIX_SETTINGS;
pub(super) use target::{Outcome, Target, rest};

const READY_BUDGET: Duration = Duration::from_secs(120);
const MEMORY_MIB: u32 = 256;
/// The memory of each guest if the peer is Roundcube, which needs memory for PHP.
const WEBMAIL_MEMORY_MIB: u32 = 512;
/// The memory of each mail server, enough for a hundred thousand messages and their index.
const MAIL_MEMORY_MIB: u32 = 1024;
const MAIL_DISK_BYTES: u64 = 8 << 30;
const PEER_DISK_BYTES: u64 = 1 << 20;

/// One of the two guests: ours or the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Ours,
    Peer,
}

impl Side {
    /// The tap interface.
    pub(super) fn interface(self) -> &'static str {
        match self {
            Side::Ours => "ours",
            Side::Peer => "peer",
        }
    }

    /// The host's address on the tap interface.
    pub(super) fn host(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, self as u8, 1)
    }

    /// The guest's address.
    pub(super) fn guest(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, self as u8, 2)
    }
}

/// A file of the site that both guests serve: its name and its size in bytes.
pub(super) type SiteFile = (&'static str, usize);

/// Settings of the mail servers besides their accounts.
#[derive(Default)]
pub(super) struct More<'a> {
    /// Further sections of our configuration.
    pub(super) tables: &'a str,
    /// Lines of the `[network]` section of our configuration.
    pub(super) network: &'a str,
    /// Files that replace the peer's usual files: path and content.
    pub(super) files: &'a [(&'a str, String)],
}

/// Additions to our usual configuration.
#[derive(Default)]
struct Settings<'a> {
    tables: &'a str,
    /// Lines of the table `[network]`.
    network: &'a str,
}

/// The files that QEMU boots as the peer.
struct Peer {
    kernel: PathBuf,
    initramfs: PathBuf,
    /// Kernel modules, each after the modules it depends on.
    modules: &'static [&'static str],
    /// The peer's disk. None: an empty disk.
    disk: Option<PathBuf>,
    /// The peer's version and its kernel's version, for the table.
    name: String,
}

impl Peer {
    /// The kernel's command line for a guest at `address`. `mitigations=off` makes Linux as fast as
    /// possible.
    fn arguments(&self, address: &str) -> String {
        let modules = self.modules.join(" ");
        format!(
            "console=ttyS0 quiet panic=-1 mitigations=off address={address} \"modules={modules}\""
        )
    }
}

/// The files and settings of both guests.
pub(super) struct Beside {
    qemu: PathBuf,
    image: PathBuf,
    memory_mib: u32,
    peer: Peer,
    /// Removed when this value is dropped.
    pub(super) folder: PathBuf,
    data: DataFolder,
    counters: [Counters; 2],
}

impl Beside {
    /// Makes our image and nginx, both with the same files. `name`: the name of the bench.
    pub(super) fn make(
        repository: &Repository,
        name: &str,
        files: &[SiteFile],
        stop: &Stop,
    ) -> Result<Beside, Failure> {
        Beside::with(repository, name, &Settings::default(), MEMORY_MIB, stop, |own| {
            let site = own.join("site");
            make_site(&site, files)?;
            Ok(move |identity: &Path| nginx::make(repository, &site, identity, stop))
        })
    }

    /// Makes our image and Roundcube, with the same accounts.
    pub(super) fn make_webmails(
        repository: &Repository,
        name: &str,
        stop: &Stop,
    ) -> Result<Beside, Failure> {
        let settings = Settings { tables: &mailboxes::users(), ..Settings::default() };
        Beside::with(repository, name, &settings, WEBMAIL_MEMORY_MIB, stop, |own| {
            make_site(&own.join("site"), &[])?;
            Ok(move |identity: &Path| roundcube::make(repository, identity, stop))
        })
    }

    /// Makes our image, and Postfix with Dovecot, with the same accounts.
    pub(super) fn make_mail_servers(
        repository: &Repository,
        name: &str,
        accounts: &[Account],
        more: &More<'_>,
        stop: &Stop,
    ) -> Result<Beside, Failure> {
        let users: String = accounts.iter().map(mailboxes::section).collect();
        let settings = Settings { tables: &(users + more.tables), network: more.network };
        Beside::with(repository, name, &settings, MAIL_MEMORY_MIB, stop, |own| {
            make_site(&own.join("site"), &[])?;
            let disk = std::fs::File::create(own.join("disk.img"))
                .and_then(|file| file.set_len(MAIL_DISK_BYTES));
            disk.map_err(Failure::io("making a disk"))?;
            Ok(move |_: &Path| postfix::make(repository, accounts, more.files, stop))
        })
    }

    /// Calls `fill` to fill our guest's folder. Then makes the peer with the certificate that is
    /// in this folder.
    fn with<MakePeer: FnOnce(&Path) -> Result<Peer, Failure>>(
        repository: &Repository,
        name: &str,
        settings: &Settings<'_>,
        memory_mib: u32,
        stop: &Stop,
        fill: impl FnOnce(&Path) -> Result<MakePeer, Failure>,
    ) -> Result<Beside, Failure> {
        packages::program("ip", "iproute2", stop)?;
        let qemu = packages::program("qemu-system-x86_64", "qemu-system-x86", stop)?;
        let image = image::build(repository, stop)?;
        let folder = repository.target(format!("bench/{name}-{}", std::process::id()));
        let own = folder.join("ours");
        std::fs::create_dir_all(&own).map_err(Failure::io("making a folder for our guest"))?;
        let make_peer = fill(&own)?;
        configure(&own, settings)?;
        let data = DataFolder::open(&own)?;
        data.pass_lock_on()?;
        let peer = make_peer(&own.join("tls"))?;
        let counters = [Counters::new(repository, stop)?, Counters::new(repository, stop)?];
        Ok(Beside { qemu, image, memory_mib, peer, folder, data, counters })
    }

    /// Describes the measured machine for a report.
    pub(super) fn machine(&self) -> String {
        format!(
            "QEMU, TCG, q35, one core, {} MiB, virtio-net on a tap; peer: {}",
            self.memory_mib, self.peer.name
        )
    }

    pub(super) fn counters(&self, side: Side) -> &Counters {
        let [ours, peers] = &self.counters;
        if side == Side::Ours { ours } else { peers }
    }

    /// Boots a guest and waits until it serves all `ports`. Both guests have the same flags, card
    /// and plugin; the booted system and the disk file differ. The tap interface is created in the
    /// caller's network namespace, so call this in a new namespace.
    pub(super) fn boot(&self, side: Side, ports: &[u16], stop: &Stop) -> Result<Guest, Failure> {
        let interface = side.interface();
        ip(&format!("tuntap add dev {interface} mode tap vnet_hdr"))?;
        ip(&format!("addr add {}/24 dev {interface}", side.host()))?;
        ip(&format!("link set {interface} up"))?;
        let guest = Guest::start(&self.setup(side)?)?;
        ports.iter().try_for_each(|port| wait_for(side, &guest, *port, stop))?;
        Ok(guest)
    }

    fn setup(&self, side: Side) -> Result<Setup, Failure> {
        let peer = &self.peer;
        let arguments = peer.arguments(&format!("{}/24", side.guest()));
        let linux = Linux { initramfs: peer.initramfs.clone(), arguments };
        let mut files = self.data.files();
        if side == Side::Peer {
            files.disk = match &peer.disk {
                Some(path) => path.clone(),
                None => {
                    let path = self.folder.join("peer.img");
                    let empty =
                        std::fs::File::create(&path).and_then(|file| file.set_len(PEER_DISK_BYTES));
                    empty.map_err(Failure::io("making a disk"))?;
                    path
                }
            };
        }
        Ok(Setup {
            qemu: self.qemu.clone(),
            image: if side == Side::Ours { self.image.clone() } else { peer.kernel.clone() },
            machine: MachineType::Q35,
            accelerator: Accelerator::Tcg,
            cores: 1,
            memory_mib: self.memory_mib,
            network: Network::Tap { interface: side.interface().into(), queues: 1 },
            files,
            plugin: Some(self.counters(side).plugin()),
            linux: (side == Side::Peer).then_some(linux),
        })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // If the folder cannot be removed, it stays under target/ and does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Makes the folder `site` with `files`. Their content is incompressible.
fn make_site(site: &Path, files: &[SiteFile]) -> Result<(), Failure> {
    let doing = "making a site";
    std::fs::create_dir_all(site).map_err(Failure::io(doing))?;
    for (name, bytes) in files {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let words = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        let content: Vec<u8> = words.flatten().take(*bytes).collect();
        std::fs::write(site.join(name), content).map_err(Failure::io(doing))?;
    }
    Ok(())
}

fn configure(folder: &Path, settings: &Settings<'_>) -> Result<(), Failure> {
    let Settings { tables, network } = settings;
    let text = format!(
        "hostname = \"mail.barepost.test\"\ndomains = [\"barepost.test\"]\n{tables}[network]\naddress = \"{0}/24\"\n{network}[web]\nsite = \"site/\"\n\
         [access]\nunthrottled_from = [\"{1}/32\"]\nplaintext_auth_from = [\"{1}/32\"]\n",
        Side::Ours.guest(),
        Side::Ours.host()
    );
    std::fs::write(folder.join("barepost.toml"), text).map_err(Failure::io("configuring our guest"))
}

fn wait_for(side: Side, guest: &Guest, port: u16, stop: &Stop) -> Result<(), Failure> {
    let address = SocketAddr::from((side.guest(), port));
    let mut printed = Vec::new();
    let started = Instant::now();
    while started.elapsed() < READY_BUDGET {
        refuse_if_stopped(stop)?;
        if TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok() {
            return Ok(());
        }
        match guest.next_event(Duration::from_millis(100)) {
            Some(Event::Line(line) | Event::Complaint(line)) => printed.push(line),
            Some(Event::Ended) => break,
            None => {}
        }
    }
    Err(Failure::broke(format_args!(
        "the guest at {address} does not serve; it said\n{}",
        printed.join("\n")
    )))
}
