//! QEMU's command line for a guest.
//!
//! The disk is opened with `cache=writeback`: the guest's writes go to the host's page cache, and a
//! flush by the guest is an fdatasync. So no write is lost when QEMU is killed. When the host loses
//! power, only unflushed writes are lost, which the guest has not acknowledged to any client.
//! `cache=none` would be no safer, is slower for small writes, and does not work on every file
//! system.
//!
//! QEMU reports every disk error to the guest, which answers its clients. QEMU's default is to stop
//! the guest when the host's file system is full. Without a monitor it would stay stopped.
//!
//! With `-sandbox`, QEMU gives up rights that it never needs: to start other programs, to change
//! its user, to use outdated system calls, and to change its own limits. So a guest that breaks
//! into QEMU gains little.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::accelerator::Accelerator;
use crate::services::{Reached, SERVICES};

/// The rights that QEMU's process gives up.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// The machine type of QEMU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum MachineType {
    /// A PC with PCI Express.
    Q35,
    /// A minimal machine without PCI, which starts fastest.
    Microvm,
}

/// Writes the name of the machine type as the command line accepts it.
impl fmt::Display for MachineType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            MachineType::Q35 => "q35",
            MachineType::Microvm => "microvm",
        })
    }
}

/// The network that the guest is connected to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Network {
    /// QEMU's own network. Port P of the guest is forwarded from 127.0.0.1:(base+P).
    User {
        /// The number that is added to each port.
        base: u16,
    },
    /// A tap interface of the host.
    Tap {
        /// The interface's name.
        interface: String,
        /// The number of its queues that the machine uses: one for each core, or 1.
        queues: u32,
    },
}

/// A TCG plugin that watches the guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plugin {
    /// The plugin's shared object.
    pub library: PathBuf,
    /// `key=value` arguments for the plugin.
    pub arguments: Vec<String>,
}

/// The additional input of an image that is a Linux kernel, used as a peer in measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linux {
    /// The kernel's first file system.
    pub initramfs: PathBuf,
    /// The kernel's command line.
    pub arguments: String,
}

/// The files of a guest, from a data folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestFiles {
    /// The disk's image.
    pub disk: PathBuf,
    /// `barepost.toml`.
    pub configuration: PathBuf,
    /// The packed site, if there is one.
    pub site: Option<PathBuf>,
    /// The packed certificates and their keys.
    pub certificates: PathBuf,
    /// The packed keys that sign messages.
    pub signing_keys: PathBuf,
    /// The packed certificates of authorities, if any are named.
    pub authorities: Option<PathBuf>,
}

/// Everything that defines a guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The QEMU program.
    pub qemu: PathBuf,
    /// The booted image: ours, or a Linux kernel.
    pub image: PathBuf,
    /// The machine type of QEMU.
    pub machine: MachineType,
    /// The executor of the guest's instructions.
    pub accelerator: Accelerator,
    /// The number of the guest's processors.
    pub cores: u32,
    /// The guest's memory, in MiB.
    pub memory_mib: u32,
    /// The network of the guest's card.
    pub network: Network,
    /// The guest's files.
    pub files: GuestFiles,
    /// The plugin that watches the guest.
    pub plugin: Option<Plugin>,
    /// The additional input of a Linux kernel, if the image is one.
    pub linux: Option<Linux>,
}

impl Setup {
    /// The arguments for QEMU.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut line = Line::default();
        line.flag("-nodefaults").flag("-no-user-config");
        line.option("-sandbox", SANDBOX);
        line.option("-name", "barepost,debug-threads=on").option("-display", "none");
        self.machine(&mut line);
        line.option("-smp", self.cores.to_string()).option("-m", format!("{}M", self.memory_mib));
        line.option("-kernel", self.image.as_os_str());
        if let Some(linux) = &self.linux {
            line.option("-initrd", linux.initramfs.as_os_str()).option("-append", &linux.arguments);
        }

        // `signal=off`: QEMU passes control characters on this pipe to the guest.
        line.option("-chardev", "stdio,id=console,signal=off").option("-serial", "chardev:console");
        line.option("-device", "isa-debug-exit,iobase=0xf4,iosize=4");
        line.option(
            "-fw_cfg",
            with_file("name=opt/barepost/barepost.toml,file=", &self.files.configuration, ""),
        );
        if let Some(site) = &self.files.site {
            line.option("-fw_cfg", with_file("name=opt/barepost/site.pack,file=", site, ""));
        }
        line.option(
            "-fw_cfg",
            with_file("name=opt/barepost/certificates.pack,file=", &self.files.certificates, ""),
        );
        line.option(
            "-fw_cfg",
            with_file("name=opt/barepost/signing-keys.pack,file=", &self.files.signing_keys, ""),
        );
        if let Some(authorities) = &self.files.authorities {
            line.option(
                "-fw_cfg",
                with_file("name=opt/barepost/authorities.pack,file=", authorities, ""),
            );
        }

        line.option("-netdev", self.network.backend());
        line.option(
            "-device",
            self.device("virtio-net", &format!("netdev=network{}", self.network.card())),
        );
        line.option(
            "-drive",
            with_file("if=none,id=disk,format=raw,cache=writeback,file=", &self.files.disk, ""),
        );
        line.option("-device", self.device("virtio-blk", "drive=disk,werror=report,rerror=report"));
        line.option("-object", "rng-builtin,id=entropy");
        line.option("-device", self.device("virtio-rng", "rng=entropy"));
        if let Some(plugin) = &self.plugin {
            let arguments: String =
                plugin.arguments.iter().map(|argument| format!(",{argument}")).collect();
            line.option("-plugin", with_file("", &plugin.library, &arguments));
        }
        line.0
    }

    fn machine(&self, line: &mut Line) {
        match self.machine {
            MachineType::Q35 => line.option("-machine", "q35"),
            // Without ACPI, QEMU names the virtio devices on the image's command line, and the
            // image looks for them there.
            MachineType::Microvm => line
                .option("-machine", "microvm,acpi=off,rtc=on")
                .option("-global", "virtio-mmio.force-legacy=false"),
        };
        for argument in self.accelerator.arguments() {
            line.flag(argument);
        }
    }

    /// The argument for a virtio device on the machine's bus, without the legacy interface.
    fn device(&self, kind: &str, backend: &str) -> String {
        match self.machine {
            MachineType::Q35 if kind == "virtio-net" => {
                format!("{kind}-pci,{backend},disable-legacy=on,romfile=")
            }
            MachineType::Q35 => format!("{kind}-pci,{backend},disable-legacy=on"),
            MachineType::Microvm => format!("{kind}-device,{backend}"),
        }
    }
}

impl Network {
    /// The card's arguments. The card has two queues for each queue of the interface, and a control
    /// queue. It has an interrupt message for each of these, and one for configuration changes.
    fn card(&self) -> String {
        match self {
            Network::Tap { queues, .. } if *queues > 1 => {
                format!(",mq=on,vectors={}", 2 * queues + 2)
            }
            _ => String::new(),
        }
    }

    fn backend(&self) -> String {
        match self {
            Network::Tap { interface, queues } => {
                let queues = if *queues > 1 { format!(",queues={queues}") } else { String::new() };
                format!("tap,id=network,ifname={interface},script=no,downscript=no{queues}")
            }
            Network::User { base } => {
                let forwarded = SERVICES.iter().map(|service| {
                    format!(",hostfwd=tcp:{}-:{}", service.forwarded(*base), service.port)
                });
                std::iter::once("user,id=network".to_string()).chain(forwarded).collect()
            }
        }
    }
}

/// The value of an option with a path. QEMU requires that every comma in the path is doubled.
fn with_file(before: &str, path: &Path, after: &str) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut value = before.as_bytes().to_vec();
    for byte in path.as_os_str().as_bytes() {
        value.push(*byte);
        if *byte == b',' {
            value.push(b',');
        }
    }
    value.extend_from_slice(after.as_bytes());
    OsString::from_vec(value)
}

#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn flag(&mut self, name: &str) -> &mut Line {
        self.0.push(name.into());
        self
    }

    fn option(&mut self, name: &str, value: impl Into<OsString>) -> &mut Line {
        self.0.push(name.into());
        self.0.push(value.into());
        self
    }
}
