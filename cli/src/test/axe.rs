//! axe-core, which says who could not use a page, for `tests/webmail_access.py`: one file of JavaScript from npm's registry, in a version and with a digest that are pinned here.

use std::fs;
use std::time::Duration;

use crate::failure::Failure;
use crate::hold;
use crate::house::House;
use crate::packages;
use crate::stop::Stop;

/// The script that needs it.
pub(super) const SCRIPT: &str = "tests/webmail_access.py";

const VERSION: &str = "4.11.0";
/// SHA-256 of the package.
const DIGEST: &str = "39bed7d72308f6d620789c169d699bfd7e8da80f65b545821a6b2215c3e83107";
const BUDGET: Duration = Duration::from_secs(120);

/// Makes `target/tools/axe/axe.min.js`, if it is not there yet.
///
/// Errors: refused, when npm's package cannot be got or is another one.
pub(super) fn fetch(house: &House, stop: &Stop) -> Result<(), Failure> {
    let (doing, folder) = ("getting axe-core", house.target("tools/axe"));
    let package = format!("axe-core-{VERSION}.tgz");
    if folder.join("axe.min.js").exists() && folder.join(&package).exists() {
        return Ok(());
    }
    let npm = packages::program("npm", "npm", stop)?;
    fs::create_dir_all(&folder).map_err(Failure::io(doing))?;
    let mut pack = hold::command(npm);
    pack.args(["pack", "--silent"]).arg(format!("axe-core@{VERSION}")).current_dir(&folder);
    hold::run_to_success(&mut pack, doing, BUDGET, stop).map_err(refused)?;
    let check = format!(
        "printf '%s  %s\\n' {DIGEST} {package} | sha256sum --check --quiet && tar -xzf {package} --strip-components=1 package/axe.min.js"
    );
    let mut unpack = hold::command("sh");
    unpack.args(["-c", &check]).current_dir(&folder);
    hold::run_to_success(&mut unpack, doing, BUDGET, stop).map_err(refused)
}

fn refused(failure: Failure) -> Failure {
    Failure::refused(format_args!("checking who can use the webmail takes axe-core, which is missing: {failure}"))
}
