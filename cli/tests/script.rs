//! The programs that the script `barepost` starts end with it.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

const PATIENCE: Duration = Duration::from_secs(20);

/// Calls `look` until it returns a value, or until [`PATIENCE`] is over.
fn sooner_or_later<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        let found = look();
        if found.is_some() || started.elapsed() > PATIENCE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the process runs. A zombie, which has ended, does not run.
fn runs(id: &str) -> bool {
    let line =
        std::fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap_or_default();
    line.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

#[test]
fn ctrl_c_during_the_first_build_ends_all_compilers() {
    // A repository in which cargo starts a compiler that takes a minute, for the image and for the
    // command line.
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let programs = root.join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(root.join("barepost"), include_str!("../../barepost")).unwrap();
    let cargo =
        "#!/bin/sh\nsh -c 'echo $$ > \"$0.new\" && mv \"$0.new\" \"$0\" && exec sleep 60' \"$1\"\n";
    for (name, text) in [("cargo", cargo), ("rustc", "#!/bin/sh\n"), ("cc", "#!/bin/sh\n")] {
        std::fs::write(programs.join(name), text).unwrap();
        std::fs::set_permissions(programs.join(name), std::fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut script = Command::new("env");
    script.args(["--default-signal=INT", "sh"]).arg(root.join("barepost")).arg("run");
    let mut script =
        script.env("PATH", path).process_group(0).stderr(Stdio::null()).spawn().unwrap();
    let compiler = |verb: &str| sooner_or_later(|| std::fs::read_to_string(root.join(verb)).ok());
    let compilers = ["image", "build"].map(|verb| compiler(verb).unwrap());
    let compilers = compilers.each_ref().map(|id| id.trim());
    assert!(compilers.iter().all(|id| runs(id)), "{compilers:?}");
    killpg(Pid::from_raw(script.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(script.wait().unwrap().signal(), Some(Signal::SIGINT as i32));
    let ended = sooner_or_later(|| compilers.iter().all(|id| !runs(id)).then_some(()));
    assert!(ended.is_some(), "a compiler still runs");
}
