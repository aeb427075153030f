//! nginx as the peer: a Linux guest with its files in memory.

use std::path::Path;

use host::{Failure, Repository, Stop, packages};

use super::Peer;
use super::debian::{self, Unpacked, copy, files, find};

const NGINX: &str = include_str!("nginx/nginx.conf");
const INIT: &str = include_str!("nginx/init");
/// The peer's packages besides the kernel.
const PACKAGES: &[&str] = &[
    "nginx",
    "nginx-common",
    "libc6",
    "libcrypt1",
    "libpcre2-8-0",
    "libssl3",
    "zlib1g",
    "busybox-static",
];
/// The libraries that nginx links against.
const LIBRARIES: &[&str] = &[
    "libc.so.6",
    "libcrypt.so.1",
    "libpcre2-8.so.0",
    "libssl.so.3",
    "libcrypto.so.3",
    "libz.so.1",
];
const LOADER: &str = "ld-linux-x86-64.so.2";
const FOLDERS: &[&str] = &[
    "run",
    "tmp",
    "srv",
    "usr/sbin",
    "lib64",
    "lib/x86_64-linux-gnu",
    "var/log/nginx",
    "var/lib/nginx",
];

/// Makes the peer with the files of `site`. The folder `identity` holds the certificate and the
/// key.
///
/// Errors: [`Failure::refused`] on a host without access to Debian's packages.
pub(super) fn make(
    repository: &Repository,
    site: &Path,
    identity: &Path,
    stop: &Stop,
) -> Result<Peer, Failure> {
    packages::program("cpio", "cpio", stop)?;
    let folder = repository.target("bench/web-peer");
    let unpacked = debian::unpack(&folder, stop, || {
        Ok(PACKAGES.iter().map(|name| name.to_string()).collect())
    })?;
    let root = folder.join("root");
    // Removes the files of an earlier run, if there are any.
    let _ = std::fs::remove_dir_all(&root);
    fill(&root, &unpacked, site)?;
    for file in files(identity)? {
        copy(&file, &root.join("etc").join(file.file_name().unwrap_or_default()))?;
    }
    let initramfs = folder.join("initramfs.cpio");
    debian::pack(&root, &initramfs, stop)?;
    let name = format!("nginx of Debian 12 with its OpenSSL on Linux {}", unpacked.release);
    Ok(Peer { kernel: unpacked.kernel, initramfs, modules: debian::CARD_MODULES, disk: None, name })
}

/// The file system of the peer.
fn fill(root: &Path, unpacked: &Unpacked, site: &Path) -> Result<(), Failure> {
    let doing = "making the peer's file system";
    debian::prepare_boot(root, unpacked, debian::CARD_MODULES, INIT)?;
    for folder in FOLDERS {
        std::fs::create_dir_all(root.join(folder)).map_err(Failure::io(doing))?;
    }
    let write =
        |to: &str, text: &str| std::fs::write(root.join(to), text).map_err(Failure::io(doing));
    copy(&unpacked.root.join("usr/sbin/nginx"), &root.join("usr/sbin/nginx"))?;
    for library in LIBRARIES {
        copy(
            &find(&unpacked.root, |name| name == *library)?,
            &root.join("lib/x86_64-linux-gnu").join(library),
        )?;
    }
    copy(&find(&unpacked.root, |name| name == LOADER)?, &root.join("lib64").join(LOADER))?;
    for file in files(site)? {
        copy(&file, &root.join("srv").join(file.file_name().unwrap_or_default()))?;
    }
    write("etc/passwd", "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n")?;
    write("etc/group", "root:x:0:\nwww-data:x:33:\n")?;
    write("etc/nginx.conf", NGINX)
}
