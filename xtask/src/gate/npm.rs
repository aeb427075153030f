//! Packages of npm's registry that tests use. The version and the digest of each are pinned here.
//! The packages are unpacked and not installed, and their dependencies are not fetched.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use host::{Failure, Repository, Stop, hold, packages};

const BUDGET: Duration = Duration::from_secs(120);

/// A package.
pub(super) struct Package {
    name: &'static str,
    version: &'static str,
    /// The package's SHA-256.
    digest: &'static str,
    /// The files that are unpacked, as patterns of `tar`.
    files: &'static str,
    /// The activity that needs the package, for messages.
    purpose: &'static str,
}

/// A script that reports accessibility problems of a page.
pub(super) const AXE: Package = Package {
    name: "axe-core",
    version: "4.11.0",
    digest: "39bed7d72308f6d620789c169d699bfd7e8da80f65b545821a6b2215c3e83107",
    files: "package/axe.min.js",
    purpose: "checking the accessibility of the webmail",
};

/// A type checker. It has no dependencies and includes the types of browsers.
pub(super) const TYPESCRIPT: Package = Package {
    name: "typescript",
    version: "5.9.3",
    digest: "10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3",
    files: "package/lib/tsc.js package/lib/_tsc.js 'package/lib/lib.*.d.ts'",
    purpose: "checking the types of the webmail's script",
};

impl Package {
    /// Unpacks the package under `target/tools`, unless it is unpacked there. Returns its folder.
    ///
    /// Errors: [`Failure::refused`] if the package is not available or has another digest.
    pub(super) fn fetch(&self, repository: &Repository, stop: &Stop) -> Result<PathBuf, Failure> {
        let Package { name, version, digest, files, .. } = self;
        let (doing, folder) = (format!("getting {name}"), repository.target("tools").join(name));
        let archive = format!("{name}-{version}.tgz");
        let is_whole = folder.join(format!("{version} is whole"));
        if is_whole.exists() {
            return Ok(folder);
        }
        let _ = fs::remove_dir_all(&folder);
        let npm = packages::program("npm", "npm", stop)?;
        fs::create_dir_all(&folder).map_err(Failure::io(&doing))?;
        let mut pack = hold::command(npm);
        pack.args(["pack", "--silent"]).arg(format!("{name}@{version}")).current_dir(&folder);
        hold::run_to_success(&mut pack, &doing, BUDGET, stop)
            .map_err(|failure| self.refused(failure))?;
        let check = format!(
            "printf '%s  %s\\n' {digest} {archive} | sha256sum --check --quiet && tar -xzf {archive} --strip-components=1 --wildcards {files}"
        );
        let mut unpack = hold::command("sh");
        unpack.args(["-c", &check]).current_dir(&folder);
        hold::run_to_success(&mut unpack, &doing, BUDGET, stop)
            .map_err(|failure| self.refused(failure))?;
        fs::write(is_whole, "").map_err(Failure::io(&doing))?;
        Ok(folder)
    }

    fn refused(&self, failure: Failure) -> Failure {
        Failure::refused(format_args!(
            "{} needs {}, which is missing: {failure}",
            self.purpose, self.name
        ))
    }
}
