//! Starts programs that die with this process ("held" programs).
//!
//! Linux ends a process when its parent ends, if the process asked for it (PR_SET_PDEATHSIG). Other
//! programs do not ask, so they are started through our own program: `barepost --held PARENT
//! PROGRAM ARGUMENT…` asks for the signal, checks whether the parent died in the meantime, and
//! becomes the program. So at no moment can the program outlive us, not even when we are killed
//! with SIGKILL.
//!
//! The signal follows the *thread* that started the program. So held programs are started from
//! threads that live as long as the process, which here is the main thread.
//!
//! Each held program leads its own process group. So Ctrl-C on the terminal reaches only us, and
//! ending a held program also ends the processes that it has started.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getppid};

use crate::failure::Failure;
use crate::stop::Stop;
use crate::terminal::remark;

const FLAG: &str = "--held";

/// If this process was started with `--held`, becomes the program on its command line. Otherwise
/// returns.
pub fn become_held_program() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(FLAG)) {
        return;
    }
    let parent =
        arguments.next().and_then(|parent| parent.to_str()?.parse().ok()).map(Pid::from_raw);
    let Some(program) = arguments.next() else { std::process::exit(2) };
    let is_held = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).is_ok();
    if !is_held || parent != Some(getppid()) {
        std::process::exit(1);
    }
    let error = Command::new(&program).args(arguments).exec();
    remark(format_args!("{}: {error}", program.display()));
    std::process::exit(127);
}

/// A command that starts `program` so that it dies with us.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    // Not current_exe(): a newer build may have replaced the file in the meantime.
    let mut command = Command::new("/proc/self/exe");
    command.arg(FLAG).arg(std::process::id().to_string()).arg(program).process_group(0);
    command
}

/// How a program ended that ran under a time budget.
pub enum Ended {
    /// The program ended by itself.
    Finished(ExitStatus),
    /// The budget was used up; the program was killed with all processes that it started.
    OutOfTime,
    /// The user asked us to stop; the program was killed with all processes that it started.
    Stopped,
}

/// Runs a held command until it ends, `budget` is used up, or the user asks us to stop.
pub fn run(command: &mut Command, budget: Duration, stop: &Stop) -> std::io::Result<Ended> {
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            // Processes that it started and left behind are killed too.
            kill_group(&child);
            return Ok(Ended::Finished(status));
        }
        let ended = match () {
            () if stop.is_requested() => Ended::Stopped,
            () if started.elapsed() > budget => Ended::OutOfTime,
            () => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        kill_group(&child);
        child.wait()?;
        return Ok(ended);
    }
}

/// Runs a held command that must succeed; `doing` names its purpose, such as "building the image".
pub fn run_to_success(
    command: &mut Command,
    doing: &str,
    budget: Duration,
    stop: &Stop,
) -> Result<(), Failure> {
    match run(command, budget, stop).map_err(Failure::io(doing))? {
        Ended::Finished(status) if status.success() => Ok(()),
        Ended::Finished(status) => Err(Failure::broke(format_args!("{doing}: failed ({status})"))),
        Ended::OutOfTime => {
            Err(Failure::broke(format_args!("{doing}: not done after {} s", budget.as_secs())))
        }
        Ended::Stopped => Err(Failure::broke(format_args!("{doing}: stopped"))),
    }
}

/// Kills a held program and the processes of its group.
pub fn kill_group(child: &Child) {
    if let Ok(id) = i32::try_from(child.id()) {
        // An error means that no process of the group is left.
        let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
    }
}

/// Kills the group, and waits until the program is gone.
pub fn end(child: &mut Child) {
    kill_group(child);
    // It has been killed, so this returns at once, and leaves no zombie.
    let _ = child.wait();
}
