//! What the integration tests need from Debian: mail clients, installed, and Postfix's `smtp-source`, unpacked beside
//! the build. Postfix itself is never installed: it would start a mail server on this machine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::failure::Failure;
use crate::hold;
use crate::house::{self, House};
use crate::packages;
use crate::stop::Stop;
use crate::test::{checkers, npm};

/// Programs and the packages that hold them.
const PROGRAMS: &[(&str, &str)] = &[
    ("python3", "python3"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("qemu-img", "qemu-utils"),
    ("curl", "curl"),
    ("h2load", "nghttp2-client"),
    ("ip", "iproute2"),
    ("ping", "iputils-ping"),
    ("tshark", "tshark"),
    ("swaks", "swaks"),
    ("msmtp", "msmtp"),
    ("mpop", "mpop"),
    ("fetchmail", "fetchmail"),
];
/// The script that asks axe-core.
const ACCESS: &str = "tests/webmail_access.py";
/// Programs that only one script needs: the script, the program, and the package that holds it.
const PROGRAMS_OF_ONE: &[(&str, &str, &str)] = &[
    ("tests/browser.py", "chromium", "chromium"),
    ("tests/webmail.py", "chromium", "chromium"),
    ("tests/webmail.py", "chromedriver", "chromium-driver"),
    (ACCESS, "chromium", "chromium"),
    (ACCESS, "chromedriver", "chromium-driver"),
    (CORPUS, "chromium", "chromium"),
    (CORPUS, "chromedriver", "chromium-driver"),
    ("tests/webmail_pictures.py", "chromium", "chromium"),
    ("tests/webmail_pictures.py", "chromedriver", "chromium-driver"),
    (checkers::SCRIPT, "testssl", "testssl.sh"),
];
/// The script that reads the letters with which CPython tests its own reading of mail.
const CORPUS: &str = "tests/webmail_corpus.py";
/// The script that tries the suite of RFC 7208's authors.
const POLICIES: &str = "tests/spf.py";
/// The script that asks NSD.
const ZONES: &str = "tests/dns.py";
/// The script that signs with dkimpy.
const SIGNATURES: &str = "tests/dkim.py";
/// Libraries that `smtp-source` needs beside its own.
const LIBRARIES: &[(&str, &str)] =
    &[("libdb-5.3.so", "libdb5.3"), ("libicuuc.so.72", "libicu72"), ("libnsl.so.2", "libnsl2")];
/// Modules of Perl's without which swaks speaks no TLS.
const MODULES: &[(&str, &str)] = &[("Net::SSLeay", "libnet-ssleay-perl")];
const UNPACK_BUDGET: Duration = Duration::from_secs(120);

/// Gets what is missing for `script`, for one script at a time. Returns the search path with which programs find all of it.
pub(super) fn fetch(house: &House, script: &str, stop: &Stop) -> Result<OsString, Failure> {
    static FETCHING: Mutex<()> = Mutex::new(());
    // Nothing lies behind the lock that a panic could have spoilt.
    let _alone = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
    let of_one =
        PROGRAMS_OF_ONE.iter().filter(|(of, ..)| *of == script).map(|(_, program, package)| (*program, *package));
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .copied()
        .chain(of_one)
        .filter(|(program, _)| house::program(program).is_none())
        .chain(LIBRARIES.iter().copied().filter(|(library, _)| !has_library(library)))
        .chain(MODULES.iter().copied().filter(|(module, _)| !has_module(module)))
        .map(|(_, package)| package)
        .collect();
    if !missing.is_empty() {
        packages::install(&missing, "what the tests need", stop)?;
    }
    if script == checkers::SCRIPT {
        checkers::fetch(house, stop)?;
    }
    if script == ACCESS {
        npm::AXE.fetch(house, stop)?;
    }
    if script == CORPUS && !house.target("tools/python-letters").exists() {
        unpack_letters_of_python(house, stop)?;
    }
    if script == POLICIES && !house.target("tools/spf").exists() {
        unpack_suite_of_policies(house, stop)?;
    }
    if script == ZONES && !house.target("tools/nsd").exists() {
        unpack_nsd(house, stop)?;
    }
    if script == SIGNATURES && !house.target("tools/dkim").exists() {
        unpack_dkimpy(house, stop)?;
    }
    let tools = house.target("tools/bin");
    if house::program("smtp-source").is_none() && !tools.join("smtp-source").exists() {
        unpack_smtp_source(house, stop)?;
    }
    let before = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools).chain(std::env::split_paths(&before));
    std::env::join_paths(folders).map_err(|error| Failure::broke(format_args!("PATH: {error}")))
}

fn has_library(name: &str) -> bool {
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"]
        .iter()
        .any(|folder| PathBuf::from(folder).join(name).exists())
}

fn has_module(name: &str) -> bool {
    let mut perl = hold::command("perl");
    perl.arg(format!("-M{name}")).args(["-e", "1"]).stderr(Stdio::null());
    perl.status().is_ok_and(|status| status.success())
}

/// Downloads Python's package of its own tests, and puts the letters from it under `target/tools/python-letters`.
fn unpack_letters_of_python(house: &House, stop: &Stop) -> Result<(), Failure> {
    let script = "rm -rf python-tests && mkdir python-tests && cd python-tests && dpkg -x ../libpython3*-testsuite_*.deb . \
                  && rm ../libpython3*-testsuite_*.deb && mv usr/lib/python3*/test/test_email/data ../python-letters && rm -r ../python-tests";
    unpack(house, "getting the letters of Python's tests", "libpython3.11-testsuite", script, stop)
}

/// Downloads pyspf, which carries the suite, and what reads it, and puts both under `target/tools/spf`.
fn unpack_suite_of_policies(house: &House, stop: &Stop) -> Result<(), Failure> {
    let script = "rm -rf spf-packages spf-suite && mkdir spf-packages && for package in python3-spf_*.deb python3-yaml_*.deb; do dpkg -x $package spf-packages; done \
                  && rm python3-spf_*.deb python3-yaml_*.deb && mkdir spf-suite && mv spf-packages/usr/share/doc/python3-spf/rfc7208-tests.yml.gz spf-suite \
                  && mv spf-packages/usr/lib/python3/dist-packages/yaml spf-suite && rm -r spf-packages && mv spf-suite spf";
    unpack(house, "getting the suite of RFC 7208", "python3-spf python3-yaml", script, stop)
}

/// Downloads NSD, and libraries that it takes, and puts all of it under `target/tools/nsd`. It is never installed: it would start a name server on this machine.
fn unpack_nsd(house: &House, stop: &Stop) -> Result<(), Failure> {
    let packages = "nsd libevent-2.1-7 libfstrm0 libprotobuf-c1";
    let script = "rm -rf nsd-packages && mkdir nsd-packages && mv nsd_*.deb libevent-2.1-7_*.deb libfstrm0_*.deb libprotobuf-c1_*.deb nsd-packages \
                  && for package in nsd-packages/*.deb; do dpkg -x $package nsd-packages; done && mv nsd-packages nsd";
    unpack(house, "getting NSD", packages, script, stop)
}

/// Downloads dkimpy, and what it takes for Ed25519, and puts all of it under `target/tools/dkim`.
fn unpack_dkimpy(house: &House, stop: &Stop) -> Result<(), Failure> {
    let packages = "python3-dkim python3-nacl python3-cffi-backend libsodium23";
    let script = "rm -rf dkim-packages dkim-library && mkdir dkim-packages && mv python3-dkim_*.deb python3-nacl_*.deb python3-cffi-backend_*.deb libsodium23_*.deb dkim-packages \
                  && for package in dkim-packages/*.deb; do dpkg -x $package dkim-packages; done && mv dkim-packages/usr/lib/python3/dist-packages dkim-library \
                  && mv dkim-packages/usr/lib/x86_64-linux-gnu/libsodium.so.23* dkim-library && rm -r dkim-packages && mv dkim-library dkim";
    unpack(house, "getting dkimpy", packages, script, stop)
}

/// Downloads packages of Debian's to `target/tools`, and does there with them what `script` says.
fn unpack(house: &House, doing: &str, package: &str, script: &str, stop: &Stop) -> Result<(), Failure> {
    let tools = house.target("tools");
    std::fs::create_dir_all(&tools).map_err(Failure::io(doing))?;
    // As root, apt would else complain that its own user cannot write here.
    let script = format!(
        "get='apt-get -qq -o APT::Sandbox::User=root'; {{ $get download {package} || {{ $get update && $get download {package}; }}; }} && {script}"
    );
    let mut command = hold::command("sh");
    command.args(["-c", &script]).current_dir(&tools);
    hold::run_to_success(&mut command, doing, UNPACK_BUDGET, stop)
}

/// Downloads the package, unpacks it under `target/tools`, and makes `target/tools/bin/smtp-source`, which finds its
/// libraries there.
fn unpack_smtp_source(house: &House, stop: &Stop) -> Result<(), Failure> {
    let doing = "getting smtp-source from Debian's package postfix";
    unpack(house, doing, "postfix", "dpkg -x postfix_*.deb postfix && rm postfix_*.deb", stop)?;
    let bin = house.target("tools/bin");
    std::fs::create_dir_all(&bin).map_err(Failure::io(doing))?;
    let start = "#!/bin/sh\n\
                 tools=$(dirname -- \"$(dirname -- \"$(readlink -f -- \"$0\")\")\")\n\
                 LD_LIBRARY_PATH=$tools/postfix/usr/lib/postfix exec \"$tools/postfix/usr/sbin/smtp-source\" \"$@\"\n";
    let path = bin.join("smtp-source");
    std::fs::write(&path, start).map_err(Failure::io(doing))?;
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).map_err(Failure::io(doing))
}
