//! Roundcube as the peer: a Linux guest with nginx, PHP-FPM, Roundcube with SQLite, and Dovecot, on a disk of its own.
//!
//! Tuned as people tune it: PHP keeps what it has compiled, and looks at no file again; nginx keeps its connections to PHP; Dovecot remembers passwords that were right. Letters that are
//! sent go through a small SMTP server to Dovecot's delivery agent, which is less than a mail server would do. Roundcube's processes and Dovecot's are one user.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Peer;
use super::debian::{self, Unpacked, copy, files, write_program};
use super::mailboxes;
use crate::failure::Failure;
use crate::hold;
use crate::house::House;
use crate::packages;
use crate::stop::Stop;

/// With all that they need.
const WANTED: &[&str] =
    &["nginx-light", "php-fpm", "roundcube-core", "roundcube-sqlite3", "dovecot-imapd", "msmtp-mta", "busybox-static"];
/// What packages need to be installed, which nobody does here.
const UNUSED: &[&str] = &["dmsetup", "dpkg", "mount", "systemd", "sysvinit-utils", "tar", "usrmerge"];
const FOLDERS: &[&str] = &[
    "proc",
    "sys",
    "dev",
    "run",
    "tmp",
    "var/lib/nginx",
    "var/log/nginx",
    "var/log/roundcube",
    "var/lib/dovecot",
    "var/lib/roundcube/data",
];
/// Where they lie, and what they hold.
const CONFIGURATION: &[(&str, &str)] = &[
    ("etc/nginx.conf", include_str!("roundcube/nginx.conf")),
    ("etc/php-fpm.conf", include_str!("roundcube/php-fpm.conf")),
    ("etc/php.ini", include_str!("roundcube/php.ini")),
    ("etc/dovecot.conf", include_str!("roundcube/dovecot.conf")),
    ("etc/roundcube/config.inc.php", include_str!("roundcube/config.inc.php")),
    ("etc/passwd", "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:\ndovecot:x:100:100::/:\ndovenull:x:101:101::/:\n"),
    ("etc/group", "root:x:0:\nwww-data:x:33:\ndovecot:x:100:\ndovenull:x:101:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
    ("etc/nsswitch.conf", "hosts: files\n"),
];
const BOOT: &str = include_str!("roundcube/boot");
const INIT: &str = include_str!("roundcube/init");
const DISK_BYTES: u64 = 1 << 30;

/// Makes the peer, with the bench's mailboxes, and with the certificate and the key that lie in the folder `identity`.
///
/// Errors: refused where there is no Debian to take it from.
pub(super) fn make(house: &House, identity: &Path, stop: &Stop) -> Result<Peer, Failure> {
    packages::program("cpio", "cpio", stop)?;
    let mke2fs = packages::program("mke2fs", "e2fsprogs", stop)?;
    let folder = house.target("bench/roundcube-peer");
    let unpacked = debian::unpack(&folder, stop, packages_wanted)?;
    let (boot, root) = (folder.join("boot"), folder.join("root"));
    for path in [&boot, &root] {
        // What is left of an earlier run; there may be nothing.
        let _ = std::fs::remove_dir_all(path);
    }
    debian::prepare_boot(&boot, &unpacked, debian::MODULES, BOOT)?;
    let initramfs = folder.join("initramfs.cpio");
    debian::pack(&boot, &initramfs, stop)?;
    fill(&root, &unpacked, identity, stop)?;
    let disk = folder.join("disk.img");
    pack(&mke2fs, &root, &disk, stop)?;
    let name = format!(
        "Roundcube of Debian 12, its nginx, PHP-FPM, SQLite and Dovecot on Linux {}, with a disk (ext4)",
        unpacked.release
    );
    Ok(Peer { kernel: unpacked.kernel, initramfs, modules: debian::MODULES, disk: Some(disk), name })
}

/// All packages that whoever installed the wanted ones on nothing would get.
fn packages_wanted() -> Result<Vec<String>, Failure> {
    let mut command = Command::new("apt-get");
    command.args(["-qq", "-o", "Dir::State::status=/dev/null", "-o", "APT::Install-Recommends=false"]);
    let output = command.args(["--print-uris", "install"]).args(WANTED).output();
    let output = output.map_err(Failure::io("asking which packages the peer needs"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Lines of an address, a file's name as NAME_VERSION_ARCHITECTURE.deb, and more.
    let names = text.lines().filter_map(|line| line.split(' ').nth(1)?.split_once('_')).map(|(name, _)| name);
    let names: Vec<String> = names.filter(|name| !UNUSED.contains(name)).map(str::to_string).collect();
    let has_all = WANTED.iter().all(|wanted| names.iter().any(|name| name == wanted));
    if has_all { Ok(names) } else { Err(Failure::refused("the peer needs Debian's packages: there is no Roundcube")) }
}

/// The file system of its disk.
fn fill(root: &Path, unpacked: &Unpacked, identity: &Path, stop: &Stop) -> Result<(), Failure> {
    let doing = "making the peer's file system";
    // Linked, not copied: none of these files is changed.
    let mut link = hold::command("cp");
    link.arg("-al").arg(&unpacked.root).arg(root);
    hold::run_to_success(&mut link, doing, debian::FETCH_BUDGET, stop)?;
    for folder in ["boot", "lib/modules"] {
        std::fs::remove_dir_all(root.join(folder)).map_err(Failure::io(doing))?;
    }
    for folder in FOLDERS {
        std::fs::create_dir_all(root.join(folder)).map_err(Failure::io(doing))?;
    }
    for (path, text) in CONFIGURATION {
        std::fs::write(root.join(path), text).map_err(Failure::io(doing))?;
    }
    for file in files(identity)? {
        copy(&file, &root.join("etc").join(file.file_name().unwrap_or_default()))?;
    }
    write_program(&root.join("init"), INIT)?;
    // PHP and the SMTP server call programs by it.
    std::os::unix::fs::symlink("busybox", root.join("bin/sh")).map_err(Failure::io(doing))?;
    let passwords: String = mailboxes::accounts()
        .iter()
        .map(|account| format!("{}:{{ARGON2ID}}{}\n", account.address(), mailboxes::HASH))
        .collect();
    std::fs::write(root.join("etc/dovecot.users"), passwords).map_err(Failure::io(doing))?;
    mailboxes::accounts()
        .iter()
        .try_for_each(|account| fill_mailbox(&root.join("var/mail").join(account.address()), account))
}

/// As a Maildir; UIDs are given in the order of the files' names.
fn fill_mailbox(folder: &Path, account: &mailboxes::Account) -> Result<(), Failure> {
    let doing = "filling the peer's mailboxes";
    for part in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(folder.join(part)).map_err(Failure::io(doing))?;
    }
    for (index, text_bytes) in account.letters.iter().enumerate() {
        let letter = mailboxes::letter(&account.address(), index, *text_bytes).replace("\r\n", "\n");
        let name = format!("{}.M{index}P1.peer:2,", 1_700_000_000 + index);
        std::fs::write(folder.join("cur").join(name), letter).map_err(Failure::io(doing))?;
    }
    Ok(())
}

fn pack(mke2fs: &PathBuf, root: &Path, disk: &Path, stop: &Stop) -> Result<(), Failure> {
    let made = std::fs::File::create(disk).and_then(|file| file.set_len(DISK_BYTES));
    made.map_err(Failure::io("making the peer's disk"))?;
    let mut command = hold::command(mke2fs);
    command.args(["-q", "-t", "ext4", "-E", "root_owner=0:0", "-d"]).arg(root).arg(disk);
    hold::run_to_success(&mut command, "making the peer's disk", debian::FETCH_BUDGET, stop)
}
