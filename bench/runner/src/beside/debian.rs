//! Builds peers from unmodified Debian packages. It fetches and unpacks them under `target/` and
//! installs nothing on this machine.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use host::{Failure, Stop, hold, remark};

pub(super) const FETCH_BUDGET: Duration = Duration::from_secs(600);

/// Kernel modules, each after the modules it depends on: first those for a network card, then those
/// for a disk with its file system.
pub(super) const MODULES: &[&str] = &[
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "virtio_blk",
    "crc16",
    "crc32c_generic",
    "libcrc32c",
    "mbcache",
    "jbd2",
    "ext4",
];
/// The modules that a network card needs.
pub(super) const CARD_MODULES: &[&str] = MODULES.split_at(8).0;

/// The folder into which all packages are unpacked.
pub(super) struct Unpacked {
    pub(super) root: PathBuf,
    pub(super) kernel: PathBuf,
    /// The version of the kernel.
    pub(super) release: String,
}

/// Fetches Debian's kernel and the packages in `names`, and unpacks them, once.
///
/// Errors: [`Failure::refused`] on a host without access to Debian's packages.
pub(super) fn unpack(
    folder: &Path,
    stop: &Stop,
    names: impl FnOnce() -> Result<Vec<String>, Failure>,
) -> Result<Unpacked, Failure> {
    let root = folder.join("unpacked");
    if !root.is_dir() {
        let (fetched, partly) = (folder.join("fetched"), folder.join("partly"));
        for path in [&fetched, &partly] {
            // Removes the files of an earlier run, if there are any.
            let _ = std::fs::remove_dir_all(path);
            std::fs::create_dir_all(path).map_err(Failure::io("making a folder for the peer"))?;
        }
        fetch(&fetched, stop, names)?;
        for package in files(&fetched)? {
            let mut unpack = hold::command("dpkg-deb");
            unpack.arg("-x").arg(&package).arg(&partly);
            hold::run_to_success(&mut unpack, "unpacking the peer's packages", FETCH_BUDGET, stop)?;
        }
        let _ = std::fs::remove_dir_all(&fetched);
        std::fs::rename(&partly, &root).map_err(Failure::io("unpacking the peer's packages"))?;
    }
    let kernel = find(&root.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    let release = kernel
        .file_name()
        .map(|name| name.to_string_lossy().replace("vmlinuz-", ""))
        .unwrap_or_default();
    Ok(Unpacked { root, kernel, release })
}

fn fetch(
    folder: &Path,
    stop: &Stop,
    names: impl FnOnce() -> Result<Vec<String>, Failure>,
) -> Result<(), Failure> {
    // A failed update is ignored: the package lists on this machine may be recent enough. If they
    // are not, the download below fails.
    let _ = hold::run(
        hold::command("apt-get").args(["-qq", "update"]).stderr(Stdio::null()),
        FETCH_BUDGET,
        stop,
    );
    let (kernel, names) = (kernel_package()?, names()?);
    remark(format_args!(
        "barepost: fetching {kernel} and {} packages more, for the peer",
        names.len()
    ));
    let mut fetch = hold::command("apt-get");
    fetch
        .args(["-qq", "-o", "APT::Sandbox::User=root", "download", &kernel])
        .args(names)
        .current_dir(folder);
    hold::run_to_success(&mut fetch, "fetching the peer's packages", FETCH_BUDGET, stop)
}

/// The package of Debian's current kernel, on which `linux-image-amd64` depends.
fn kernel_package() -> Result<String, Failure> {
    let output = Command::new("apt-cache").args(["depends", "linux-image-amd64"]).output();
    let output = output.map_err(|error| {
        Failure::refused(format_args!("the peer needs Debian's packages: apt-cache: {error}"))
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let name = names.find(|name| name.starts_with("linux-image-"));
    name.map(str::to_string).ok_or_else(|| {
        Failure::refused("the peer needs Debian's packages: there is no linux-image-amd64")
    })
}

/// Prepares the kernel's boot files in the folder `root`: busybox, modules, and the `init` script.
/// The folder may contain other files.
pub(super) fn prepare_boot(
    root: &Path,
    unpacked: &Unpacked,
    modules: &[&str],
    init: &str,
) -> Result<(), Failure> {
    let doing = "making the peer's file system";
    for folder in ["bin", "dev", "etc", "proc", "sys", "modules"] {
        std::fs::create_dir_all(root.join(folder)).map_err(Failure::io(doing))?;
    }
    copy(&unpacked.root.join("bin/busybox"), &root.join("bin/busybox"))?;
    for module in modules {
        let file = format!("{module}.ko");
        copy(
            &find(&unpacked.root.join("lib/modules"), |name| name == file)?,
            &root.join("modules").join(&file),
        )?;
    }
    symlink("busybox", root.join("bin/sh")).map_err(Failure::io(doing))?;
    write_program(&root.join("init"), init)
}

pub(super) fn write_program(path: &Path, text: &str) -> Result<(), Failure> {
    let written = std::fs::write(path, text)
        .and_then(|()| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)));
    written.map_err(Failure::io("making the peer's file system"))
}

pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::copy(from, to)
        .map(drop)
        .map_err(Failure::io(format_args!("copying {}", from.display())))
}

/// The folder as a cpio archive, which the kernel unpacks.
pub(super) fn pack(root: &Path, initramfs: &Path, stop: &Stop) -> Result<(), Failure> {
    let doing = "packing the peer's file system";
    let output = std::fs::File::create(initramfs).map_err(Failure::io(doing))?;
    let mut command = hold::command("sh");
    command
        .args(["-c", "find . | cpio --quiet -o -H newc"])
        .current_dir(root)
        .stdout(Stdio::from(output));
    hold::run_to_success(&mut command, doing, FETCH_BUDGET, stop)
}

/// The first file below `folder` with a wanted name. A symbolic link counts as a file, because
/// copying it copies its target.
pub(super) fn find(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<PathBuf, Failure> {
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
    Err(Failure::broke(format_args!(
        "the peer's packages lack something below {}",
        folder.display()
    )))
}

pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let doing = format!("reading {}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(Failure::io(&doing))?;
    let paths: Result<Vec<PathBuf>, _> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(Failure::io(&doing))?;
    paths.sort();
    Ok(paths)
}
