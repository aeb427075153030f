//! A build script. It passes the commit date of the sources to a machine's program, as
//! `BAREPOST_COMMITTED` in seconds since 1970.
//!
//! The program uses the date as a lower bound of the time of day. `SOURCE_DATE_EPOCH` overrides the
//! date from git, so a build from an archive without git can also have a date.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let date = given
        .or_else(|| git(&["log", "-1", "--format=%ct"]))
        .and_then(|text| text.trim().parse::<u64>().ok());
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", file]) {
            println!("cargo::rerun-if-changed={}", path.trim());
        }
    }
    if date.is_none() {
        println!(
            "cargo::warning=neither git nor SOURCE_DATE_EPOCH tells when this program was committed"
        );
    }
    println!("cargo::rustc-env=BAREPOST_COMMITTED={}", date.unwrap_or(0));
}

/// The output of git with these arguments. `None` if git fails, for example outside of a
/// repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}
