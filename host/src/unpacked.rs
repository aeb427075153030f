//! Programs and files of Debian packages that are unpacked below `target/tools` and never
//! installed. If they were installed, they would start servers on this machine, or conflict with
//! the host's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::Failure;
use crate::hold;
use crate::packages;
use crate::repository::{self, Repository};
use crate::stop::Stop;

const UNPACK_BUDGET: Duration = Duration::from_secs(120);

/// Packages that are unpacked together.
pub struct Unpacked {
    /// The name of their folder below `target/tools`.
    pub name: &'static str,
    /// The packages, with spaces between them.
    pub packages: &'static str,
    /// The unpacked files that are kept, as shell patterns.
    pub kept: &'static str,
}

/// The name server of NLnet Labs.
pub const NSD: Unpacked =
    Unpacked { name: "nsd", packages: "nsd libevent-2.1-7 libfstrm0 libprotobuf-c1", kept: "*" };
/// The mail server Postfix, and its test programs.
pub const POSTFIX: Unpacked = Unpacked { name: "postfix", packages: "postfix", kept: "*" };

/// Libraries that Postfix's programs need beside their own, and the packages that hold them.
pub const LIBRARIES: &[(&str, &str)] =
    &[("libdb-5.3.so", "libdb5.3"), ("libicuuc.so.72", "libicu72"), ("libnsl.so.2", "libnsl2")];

/// Whether this machine has the library.
pub fn has_library(name: &str) -> bool {
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"]
        .iter()
        .any(|folder| PathBuf::from(folder).join(name).exists())
}

impl Unpacked {
    /// Downloads the packages and unpacks them, unless that was done before.
    ///
    /// Errors: [`Failure::broke`] if they are not available.
    pub fn fetch(&self, repository: &Repository, stop: &Stop) -> Result<(), Failure> {
        let Unpacked { name, packages, kept } = self;
        let doing = format!("getting {packages}");
        let tools = repository.target("tools");
        if tools.join(name).exists() {
            return Ok(());
        }
        std::fs::create_dir_all(&tools).map_err(Failure::io(&doing))?;
        // As root, apt would else complain that its own user cannot write here.
        let script = format!(
            "get='apt-get -qq -o APT::Sandbox::User=root'; rm -rf {name}.new {name}.kept && mkdir {name}.new {name}.kept && cd {name}.new \
             && {{ $get download {packages} || {{ $get update && $get download {packages}; }}; }} && for package in *.deb; do dpkg -x $package .; done && rm *.deb \
             && mv {kept} ../{name}.kept && cd .. && rm -r {name}.new && mv {name}.kept {name}"
        );
        let mut command = hold::command("sh");
        command.args(["-c", &script]).current_dir(&tools);
        hold::run_to_success(&mut command, &doing, UNPACK_BUDGET, stop)
    }
}

/// A program that is unpacked and never installed.
pub struct Tool {
    name: &'static str,
    unpacked: &'static Unpacked,
    /// The program's place and its libraries' place, below the folder of its packages.
    folder: &'static str,
    libraries: &'static str,
}

/// Postfix's load generator.
pub const SMTP_SOURCE: Tool = of_postfix("smtp-source");
/// A mail server that accepts any mail, and keeps none.
pub const SMTP_SINK: Tool = of_postfix("smtp-sink");
/// A name server.
pub const NAME_SERVER: Tool =
    Tool { name: "nsd", unpacked: &NSD, folder: "usr/sbin", libraries: "usr/lib/x86_64-linux-gnu" };

const fn of_postfix(name: &'static str) -> Tool {
    Tool { name, unpacked: &POSTFIX, folder: "usr/sbin", libraries: "usr/lib/postfix" }
}

impl Tool {
    /// Gets the program and everything that it needs. Returns its path.
    ///
    /// Errors: [`Failure::refused`] or [`Failure::broke`] if a part of it is not available.
    pub fn fetch(&self, repository: &Repository, stop: &Stop) -> Result<PathBuf, Failure> {
        let lacking = LIBRARIES.iter().filter(|(library, _)| !has_library(library));
        let lacking: Vec<&str> = lacking.map(|(_, package)| *package).collect();
        if !lacking.is_empty() {
            packages::install(&lacking, "what Postfix's programs need", stop)?;
        }
        self.get(repository, stop)
    }

    /// The same without libraries from other packages.
    ///
    /// Errors: [`Failure::broke`] if it is not available.
    pub fn get(&self, repository: &Repository, stop: &Stop) -> Result<PathBuf, Failure> {
        if let Some(path) = repository::program(self.name) {
            return Ok(path);
        }
        let path = repository.target("tools/bin").join(self.name);
        if !path.exists() {
            self.unpacked.fetch(repository, stop)?;
            self.make_start(&path)?;
        }
        Ok(path)
    }

    /// Writes the script that starts the program, so that it finds its libraries.
    fn make_start(&self, path: &Path) -> Result<(), Failure> {
        let Tool { name, unpacked, folder, libraries } = self;
        let doing = format!("getting {name} from Debian's packages {}", unpacked.packages);
        if let Some(bin) = path.parent() {
            std::fs::create_dir_all(bin).map_err(Failure::io(&doing))?;
        }
        let start = format!(
            "#!/bin/sh\n\
             there=$(dirname -- \"$(dirname -- \"$(readlink -f -- \"$0\")\")\")/{}\n\
             LD_LIBRARY_PATH=$there/{libraries} exec \"$there/{folder}/{name}\" \"$@\"\n",
            unpacked.name
        );
        std::fs::write(path, start).map_err(Failure::io(&doing))?;
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
            .map_err(Failure::io(&doing))
    }
}
