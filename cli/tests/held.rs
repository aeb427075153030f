//! The programs that `barepost` starts die with it, even when it is killed with SIGKILL.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BAREPOST: &str = env!("CARGO_BIN_EXE_barepost");

/// Whether a process runs. A zombie, which has ended, does not run.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[test]
fn a_held_program_dies_with_its_parent() {
    // A shell takes the place of `barepost`: it starts a program as `barepost` does, and is killed.
    let script = format!("{BAREPOST} --held $$ sleep 1000 & echo $!; wait");
    let mut shell =
        Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let held: u32 = line.trim().parse().unwrap();
    let started = Instant::now();
    // Wait until the process has become the program.
    while !std::fs::read_link(format!("/proc/{held}/exe"))
        .is_ok_and(|exe| !exe.ends_with(Path::new("barepost")))
    {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(runs(held));
    shell.kill().unwrap();
    shell.wait().unwrap();
    let killed = Instant::now();
    while runs(held) {
        assert!(killed.elapsed() < Duration::from_secs(5), "the program outlives its parent");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn program_of_a_dead_parent_does_not_start() {
    let other = std::process::id() + 1;
    let status =
        Command::new(BAREPOST).args(["--held", &other.to_string(), "true"]).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_held_program_gets_its_arguments_and_gives_its_exit_status() {
    let own = std::process::id().to_string();
    let arguments =
        ["--held", &own, "sh", "-c", "test \"$1\" = '--help me' && exit 7", "sh", "--help me"];
    // This test is not the main thread. Still the parent of the program is this process.
    let status = Command::new(BAREPOST).args(arguments).status().unwrap();
    assert_eq!(status.code(), Some(7));
}
