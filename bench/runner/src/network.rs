//! A network namespace for a bench. It belongs to the thread that enters it, and ends with that
//! thread.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use host::Failure;
use nix::sched::{CloneFlags, unshare};

/// Moves this thread into a new network namespace.
///
/// Errors: [`Failure::refused`] if that is not permitted.
pub(super) fn enter() -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| {
        Failure::refused(format_args!(
            "network namespaces are not permitted here ({error}); this bench needs root"
        ))
    })?;
    ip("link set lo up")
}

/// Widens the range of local ports for clients that open thousands of connections a second.
pub(super) fn widen() -> Result<(), Failure> {
    for (name, value) in [("ip_local_port_range", "1024 65000"), ("tcp_tw_reuse", "1")] {
        let path = Path::new("/proc/sys/net/ipv4").join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .open(&path)
            .map_err(Failure::io("widening the network"))?;
        file.write_all(value.as_bytes()).map_err(Failure::io("widening the network"))?;
    }
    Ok(())
}

/// Runs `ip` with `arguments`, in this thread's network namespace.
pub(super) fn ip(arguments: &str) -> Result<(), Failure> {
    let doing = format!("ip {arguments}");
    let output =
        Command::new("ip").args(arguments.split(' ')).output().map_err(Failure::io(&doing))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::broke(format_args!("{doing}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
