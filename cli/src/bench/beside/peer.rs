//! The peer: a Linux guest with nginx, made of Debian's packages as they are: its kernel, and an initramfs with busybox, nginx and what
//! nginx needs.
//!
//! Nothing is installed on this machine: the packages are fetched and unpacked under `target/`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::failure::Failure;
use crate::hold;
use crate::house::House;
use crate::packages;
use crate::stop::Stop;
use crate::terminal::remark;

const NGINX: &str = include_str!("peer/nginx.conf");
const INIT: &str = include_str!("peer/init");
/// Beside the kernel, whose package has its version in its name.
const PACKAGES: &[&str] =
    &["nginx", "nginx-common", "libc6", "libcrypt1", "libpcre2-8-0", "libssl3", "zlib1g", "busybox-static"];
/// What nginx is linked to.
const LIBRARIES: &[&str] =
    &["libc.so.6", "libcrypt.so.1", "libpcre2-8.so.0", "libssl.so.3", "libcrypto.so.3", "libz.so.1"];
const LOADER: &str = "ld-linux-x86-64.so.2";
/// Of the kernel, each after those that it needs.
const MODULES: &[&str] = &[
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
];
const FOLDERS: &[&str] = &[
    "bin",
    "dev",
    "etc",
    "proc",
    "sys",
    "run",
    "tmp",
    "srv",
    "modules",
    "usr/sbin",
    "lib64",
    "lib/x86_64-linux-gnu",
    "var/log/nginx",
    "var/lib/nginx",
];
const FETCH_BUDGET: Duration = Duration::from_secs(600);

/// What QEMU boots.
pub(super) struct Peer {
    pub(super) kernel: PathBuf,
    pub(super) initramfs: PathBuf,
    /// Its version and the kernel's, for the table.
    pub(super) name: String,
}

/// Makes the peer, with the files of `site`, and with the certificate and the key that lie in the folder `identity`.
///
/// Errors: refused where there is no Debian to take it from.
pub(super) fn make(house: &House, site: &Path, identity: &Path, stop: &Stop) -> Result<Peer, Failure> {
    packages::program("cpio", "cpio", stop)?;
    let folder = house.target("bench/web-peer");
    let unpacked = unpack(&folder, stop)?;
    let kernel = find(&unpacked.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    let root = folder.join("root");
    // What is left of an earlier run; there may be nothing.
    let _ = std::fs::remove_dir_all(&root);
    fill(&root, &unpacked, site)?;
    for file in files(identity)? {
        let name = file.file_name().unwrap_or_default();
        std::fs::copy(&file, root.join("etc").join(name)).map_err(Failure::io("copying the certificate"))?;
    }
    let initramfs = folder.join("initramfs.cpio");
    pack(&root, &initramfs, stop)?;
    let release = kernel.file_name().map(|name| name.to_string_lossy().replace("vmlinuz-", "")).unwrap_or_default();
    Ok(Peer { kernel, initramfs, name: format!("nginx of Debian 12 with its OpenSSL on Linux {release}") })
}

impl Peer {
    /// The kernel's command line for a guest at `address`. `mitigations=off`: as fast as it can be.
    pub(super) fn arguments(&self, address: &str) -> String {
        format!("console=ttyS0 quiet panic=-1 mitigations=off address={address} \"modules={}\"", MODULES.join(" "))
    }
}

/// Fetches the packages and unpacks them, once.
fn unpack(folder: &Path, stop: &Stop) -> Result<PathBuf, Failure> {
    let unpacked = folder.join("unpacked");
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    let (fetched, partly) = (folder.join("fetched"), folder.join("partly"));
    for path in [&fetched, &partly] {
        let _ = std::fs::remove_dir_all(path);
        std::fs::create_dir_all(path).map_err(Failure::io("making a folder for the peer"))?;
    }
    // The lists may be fresh although no mirror answers now, or we may not fetch them; what is fetched next is what counts.
    let _ = hold::run(hold::command("apt-get").args(["-qq", "update"]).stderr(Stdio::null()), FETCH_BUDGET, stop);
    let kernel = kernel_package()?;
    remark(format_args!("barepost: fetching {kernel}, nginx and what it needs, for the peer"));
    let mut fetch = hold::command("apt-get");
    fetch.args(["-qq", "-o", "APT::Sandbox::User=root", "download", &kernel]).args(PACKAGES).current_dir(&fetched);
    hold::run_to_success(&mut fetch, "fetching the peer's packages", FETCH_BUDGET, stop)?;
    for package in files(&fetched)? {
        let mut unpack = hold::command("dpkg-deb");
        unpack.arg("-x").arg(&package).arg(&partly);
        hold::run_to_success(&mut unpack, "unpacking the peer's packages", FETCH_BUDGET, stop)?;
    }
    let _ = std::fs::remove_dir_all(&fetched);
    std::fs::rename(&partly, &unpacked).map_err(Failure::io("unpacking the peer's packages"))?;
    Ok(unpacked)
}

/// Debian's current kernel: what `linux-image-amd64` stands for.
fn kernel_package() -> Result<String, Failure> {
    let output = Command::new("apt-cache").args(["depends", "linux-image-amd64"]).output();
    let output = output
        .map_err(|error| Failure::refused(format_args!("the peer needs Debian's packages: apt-cache: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let name = names.find(|name| name.starts_with("linux-image-"));
    name.map(str::to_string)
        .ok_or_else(|| Failure::refused("the peer needs Debian's packages: there is no linux-image-amd64"))
}

/// The file system of the peer.
fn fill(root: &Path, unpacked: &Path, site: &Path) -> Result<(), Failure> {
    let doing = "making the peer's file system";
    for folder in FOLDERS {
        std::fs::create_dir_all(root.join(folder)).map_err(Failure::io(doing))?;
    }
    let copy = |from: &Path, to: &str| std::fs::copy(from, root.join(to)).map(drop).map_err(Failure::io(doing));
    let write = |to: &str, text: &str| std::fs::write(root.join(to), text).map_err(Failure::io(doing));
    copy(&unpacked.join("bin/busybox"), "bin/busybox")?;
    copy(&unpacked.join("usr/sbin/nginx"), "usr/sbin/nginx")?;
    for library in LIBRARIES {
        copy(&find(unpacked, |name| name == *library)?, &format!("lib/x86_64-linux-gnu/{library}"))?;
    }
    copy(&find(unpacked, |name| name == LOADER)?, &format!("lib64/{LOADER}"))?;
    for module in MODULES {
        let file = format!("{module}.ko");
        copy(&find(&unpacked.join("lib/modules"), |name| name == file)?, &format!("modules/{file}"))?;
    }
    for file in files(site)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        copy(&file, &format!("srv/{name}"))?;
    }
    symlink("busybox", root.join("bin/sh")).map_err(Failure::io(doing))?;
    write("etc/passwd", "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n")?;
    write("etc/group", "root:x:0:\nwww-data:x:33:\n")?;
    write("etc/nginx.conf", NGINX)?;
    write("init", INIT)?;
    std::fs::set_permissions(root.join("init"), PermissionsExt::from_mode(0o755)).map_err(Failure::io(doing))
}

/// As the kernel reads it.
fn pack(root: &Path, initramfs: &Path, stop: &Stop) -> Result<(), Failure> {
    let doing = "packing the peer's file system";
    let output = std::fs::File::create(initramfs).map_err(Failure::io(doing))?;
    let mut command = hold::command("sh");
    command.args(["-c", "find . | cpio --quiet -o -H newc"]).current_dir(root).stdout(Stdio::from(output));
    hold::run_to_success(&mut command, doing, FETCH_BUDGET, stop)
}

/// The first file below `folder` whose name is wanted. Links are files: copying one copies what it leads to.
fn find(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<PathBuf, Failure> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in files(&folder)? {
            let is_link = path.is_symlink();
            if path.is_dir() && !is_link {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| wanted(&name.to_string_lossy())) {
                return Ok(path);
            }
        }
    }
    Err(Failure::broke(format_args!("the peer's packages lack something below {}", folder.display())))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let doing = format!("reading {}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(Failure::io(&doing))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(Failure::io(&doing))?;
    paths.sort();
    Ok(paths)
}
