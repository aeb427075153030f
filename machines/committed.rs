//! A build script: tells a machine's program when it was committed, in seconds since 1970, as
//! `BAREPOST_COMMITTED`.
//!
//! The date is a lower bound of the time of day. `SOURCE_DATE_EPOCH` goes first, so that a build
//! from an archive has one, too.

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

/// What git says, if there is a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}
