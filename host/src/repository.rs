//! Finds the parts of the repository.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The repository that this command belongs to.
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Finds the repository. The script `barepost` at its root says where it is.
    pub fn find() -> Result<Repository, Failure> {
        let root = std::env::var_os("BAREPOST_ROOT").map(PathBuf::from);
        match root {
            Some(root) if root.join("machines/bare").is_dir() => Ok(Repository { root }),
            _ => Err(Failure::refused(
                "start this program with the script `barepost` in the root of the repository",
            )),
        }
    }

    /// The repository's root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// A path below `target`, which holds generated files.
    pub fn target(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join("target").join(below)
    }
}

/// The first file called `name` in the folders of the environment's `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    program_in(&path, name)
}

fn program_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
