//! Checks the webmail's script against the types in its comments, with TypeScript's strict options.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use host::{Failure, Repository, Stop, hold, packages};

use crate::gate::npm;

/// The folder of the script's files. They are served and checked as one program.
const FOLDER: &str = "engine/webmail/static";

/// The options of the check. The files use only features that browsers have had since 2023.
const OPTIONS: &str = "--noEmit --allowJs --checkJs --strict --noUncheckedIndexedAccess --noImplicitReturns \
    --noFallthroughCasesInSwitch --noUnusedLocals --noUnusedParameters --target es2023 --lib es2023,dom,dom.iterable";

/// The command that checks the script.
///
/// Errors: [`Failure::refused`] if TypeScript is not available.
pub(super) fn checker(repository: &Repository, stop: &Stop) -> Result<Command, Failure> {
    let folder = npm::TYPESCRIPT.fetch(repository, stop)?;
    let mut check = hold::command(packages::program("node", "nodejs", stop)?);
    check
        .arg(folder.join("lib/tsc.js"))
        .args(OPTIONS.split_whitespace())
        .args(files(repository)?)
        .current_dir(repository.root());
    Ok(check)
}

fn files(repository: &Repository) -> Result<Vec<PathBuf>, Failure> {
    let doing = format!("reading {FOLDER}");
    let mut files = Vec::new();
    for entry in fs::read_dir(repository.path(FOLDER)).map_err(Failure::io(&doing))? {
        let path = entry.map_err(Failure::io(&doing))?.path();
        if path.extension().is_some_and(|extension| extension == "js") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
