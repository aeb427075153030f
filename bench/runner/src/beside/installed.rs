//! A peer that needs many packages. It is installed on its own ext4 disk, and a Linux guest boots
//! from that disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use host::{Failure, Repository, Stop, hold, packages};

use super::Peer;
use super::debian::{self, Unpacked, write_program};

/// Packages that only help to install other packages. Here they are not needed.
const UNUSED: &[&str] =
    &["dmsetup", "dpkg", "mount", "systemd", "sysvinit-utils", "tar", "usrmerge"];
const BOOT: &str = include_str!("boot");
const DOING: &str = "making the peer's file system";

/// The contents of the disk.
pub(super) struct Installation {
    /// The folder, below `target/bench`, in which the disk is made.
    pub(super) folder: &'static str,
    /// Packages. They are installed with their dependencies.
    pub(super) wanted: &'static [&'static str],
    /// Folders that must exist.
    pub(super) folders: &'static [&'static str],
    /// Files: path and contents.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// The `init` script.
    pub(super) init: &'static str,
    pub(super) disk_bytes: u64,
    /// The name of the peer in the table. The kernel's version follows it.
    pub(super) name: &'static str,
}

impl Installation {
    /// Makes the peer; `fill` adds to its disk's file system.
    ///
    /// Errors: [`Failure::refused`] on a host without access to Debian's packages.
    pub(super) fn make(
        &self,
        repository: &Repository,
        stop: &Stop,
        fill: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<Peer, Failure> {
        packages::program("cpio", "cpio", stop)?;
        let mke2fs = packages::program("mke2fs", "e2fsprogs", stop)?;
        let folder = repository.target("bench").join(self.folder);
        let unpacked = debian::unpack(&folder, stop, || self.packages_wanted())?;
        let (boot, root) = (folder.join("boot"), folder.join("root"));
        for path in [&boot, &root] {
            // Removes the files of an earlier run, if there are any.
            let _ = std::fs::remove_dir_all(path);
        }
        debian::prepare_boot(&boot, &unpacked, debian::MODULES, BOOT)?;
        let initramfs = folder.join("initramfs.cpio");
        debian::pack(&boot, &initramfs, stop)?;
        self.lay_out(&root, &unpacked, stop)?;
        fill(&root)?;
        let disk = folder.join("disk.img");
        self.pack(&mke2fs, &root, &disk, stop)?;
        let name = format!("{} on Linux {}, with a disk (ext4)", self.name, unpacked.release);
        Ok(Peer {
            kernel: unpacked.kernel,
            initramfs,
            modules: debian::MODULES,
            disk: Some(disk),
            name,
        })
    }

    /// The wanted packages and all their dependencies.
    fn packages_wanted(&self) -> Result<Vec<String>, Failure> {
        let mut command = Command::new("apt-get");
        command.args([
            "-qq",
            "-o",
            "Dir::State::status=/dev/null",
            "-o",
            "APT::Install-Recommends=false",
        ]);
        let output = command.args(["--print-uris", "install"]).args(self.wanted).output();
        let output = output.map_err(Failure::io("asking which packages the peer needs"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Each line begins with a URI and a file name, which is NAME_VERSION_ARCHITECTURE.deb.
        let names = text
            .lines()
            .filter_map(|line| line.split(' ').nth(1)?.split_once('_'))
            .map(|(name, _)| name);
        let names: Vec<String> =
            names.filter(|name| !UNUSED.contains(name)).map(str::to_string).collect();
        let lacking = self.wanted.iter().find(|wanted| !names.iter().any(|name| name == *wanted));
        lacking.map_or(Ok(names), |name| {
            Err(Failure::refused(format_args!(
                "the peer needs Debian's packages: there is no {name}"
            )))
        })
    }

    /// Makes the file system of the peer's disk.
    fn lay_out(&self, root: &Path, unpacked: &Unpacked, stop: &Stop) -> Result<(), Failure> {
        // These are links, not copies, because none of these files is changed.
        let mut link = hold::command("cp");
        link.arg("-al").arg(&unpacked.root).arg(root);
        hold::run_to_success(&mut link, DOING, debian::FETCH_BUDGET, stop)?;
        for folder in ["boot", "lib/modules"] {
            std::fs::remove_dir_all(root.join(folder)).map_err(Failure::io(DOING))?;
        }
        for folder in self.folders {
            std::fs::create_dir_all(root.join(folder)).map_err(Failure::io(DOING))?;
        }
        for (path, text) in self.files {
            write(&root.join(path), text)?;
        }
        write_program(&root.join("init"), self.init)?;
        // Programs start other programs through the shell at this path.
        std::os::unix::fs::symlink("busybox", root.join("bin/sh")).map_err(Failure::io(DOING))
    }

    fn pack(&self, mke2fs: &PathBuf, root: &Path, disk: &Path, stop: &Stop) -> Result<(), Failure> {
        let made = std::fs::File::create(disk).and_then(|file| file.set_len(self.disk_bytes));
        made.map_err(Failure::io("making the peer's disk"))?;
        let mut command = hold::command(mke2fs);
        command.args(["-q", "-t", "ext4", "-E", "root_owner=0:0", "-d"]).arg(root).arg(disk);
        hold::run_to_success(&mut command, "making the peer's disk", debian::FETCH_BUDGET, stop)
    }
}

/// Writes a new file. An existing file is not changed but replaced, since it may be a hard link to
/// a file of a package.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    // The file may not exist.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, text).map_err(Failure::io(DOING))
}
