//! Chooses KVM or QEMU's translator for the guest, and checks whether KVM really works.
//!
//! The presence of /dev/kvm is not enough. In some virtual machines it opens, and the guest dies at
//! its first vector instruction. So a guest of 80 bytes runs on KVM before KVM is chosen. It turns
//! SSE on, adds two vectors, and ends through the debug exit.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use host::{Failure, hold};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// The executor of the guest's instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accelerator {
    /// The processor.
    Kvm,
    /// QEMU's translator.
    Tcg,
}

impl fmt::Display for Accelerator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Accelerator::Kvm => "KVM",
            Accelerator::Tcg => "TCG",
        })
    }
}

impl Accelerator {
    /// The arguments for QEMU. They include the processor model with all available features.
    pub(super) fn arguments(self) -> [&'static str; 4] {
        match self {
            Accelerator::Kvm => ["-accel", "kvm", "-cpu", "host"],
            Accelerator::Tcg => ["-accel", "tcg", "-cpu", "max"],
        }
    }
}

/// The user's choice of the accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum AcceleratorChoice {
    /// KVM if a guest really runs on it, else TCG.
    Auto,
    /// The processor itself.
    Kvm,
    /// QEMU's translator, which runs everywhere.
    Tcg,
}

impl AcceleratorChoice {
    /// Errors: [`Failure::refused`] if KVM is asked for and no guest runs on it.
    pub fn choose(self, qemu: &Path) -> Result<Accelerator, Failure> {
        match self {
            AcceleratorChoice::Tcg => Ok(Accelerator::Tcg),
            AcceleratorChoice::Kvm if runs_a_guest(qemu, Accelerator::Kvm)? => Ok(Accelerator::Kvm),
            AcceleratorChoice::Kvm => Err(Failure::refused(
                "--accel kvm: KVM does not work on this host; use --accel tcg",
            )),
            AcceleratorChoice::Auto => {
                let is_there = File::options().read(true).write(true).open("/dev/kvm").is_ok();
                Ok(if is_there && runs_a_guest(qemu, Accelerator::Kvm)? {
                    Accelerator::Kvm
                } else {
                    Accelerator::Tcg
                })
            }
        }
    }
}

/// The longest time of the small guest. It usually needs a few milliseconds.
const PROBE_BUDGET: Duration = Duration::from_secs(3);
/// QEMU's exit status when the guest wrote 0x2a to the debug exit.
const PROBE_PASSED: i32 = 0x2a << 1 | 1;

/// A Multiboot image that QEMU loads at 1 MiB and enters in 32-bit protected mode.
#[rustfmt::skip]
pub(super) const PROBE: [u8; 80] = [
    0x02, 0xb0, 0xad, 0x1b,                   // Multiboot header: magic
    0x00, 0x00, 0x01, 0x00,                   //   flags: addresses follow
    0xfe, 0x4f, 0x51, 0xe4,                   //   checksum
    0x00, 0x00, 0x10, 0x00,                   //   the address of the header
    0x00, 0x00, 0x10, 0x00,                   //   the address of the image
    0, 0, 0, 0, 0, 0, 0, 0,                   //   load the whole file; no BSS
    0x20, 0x00, 0x10, 0x00,                   //   the entry
    0x0f, 0x20, 0xe0,                         // mov eax, cr4
    0x0d, 0x00, 0x06, 0x00, 0x00,             // or eax, OSFXSR | OSXMMEXCPT
    0x0f, 0x22, 0xe0,                         // mov cr4, eax
    0x0f, 0x20, 0xc0,                         // mov eax, cr0
    0x24, 0xfb,                               // and al, not EM
    0x0c, 0x02,                               // or al, MP
    0x0f, 0x22, 0xc0,                         // mov cr0, eax
    0x0f, 0x10, 0x05, 0x00, 0x00, 0x10, 0x00, // movups xmm0, [0x100000]
    0x66, 0x0f, 0xfe, 0xc0,                   // paddd xmm0, xmm0
    0x66, 0x0f, 0xef, 0xc9,                   // pxor xmm1, xmm1
    0xb0, 0x2a,                               // mov al, 0x2a
    0x66, 0xba, 0xf4, 0x00,                   // mov dx, 0xf4
    0xee,                                     // out dx, al
    0xf4,                                     // hlt
    0, 0, 0, 0,
];

/// Whether the small guest reaches its debug exit on `accelerator`.
fn runs_a_guest(qemu: &Path, accelerator: Accelerator) -> Result<bool, Failure> {
    let doing = "trying the accelerator";
    // The image is a file in memory, so no file remains after this process.
    let descriptor = memfd_create("probe", MFdFlags::MFD_CLOEXEC)
        .map_err(|error| Failure::io(doing)(error.into()))?;
    let mut file = File::from(descriptor);
    file.write_all(&PROBE).map_err(Failure::io(doing))?;

    let mut command = hold::command(qemu);
    command.args([
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-machine",
        "microvm",
        "-m",
        "64",
    ]);
    command.args(accelerator.arguments());
    command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-kernel"]);
    command.arg(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(Failure::io(doing))?;

    // A guest that dies in KVM hangs for ever. QEMU's error message ends the wait early.
    let (sender, died) = std::sync::mpsc::channel();
    if let Some(complaints) = child.stderr.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(complaints).lines().map_while(Result::ok) {
                if line.contains("KVM internal error") {
                    let _ = sender.send(());
                }
            }
        });
    }
    let started = Instant::now();
    let passed = loop {
        match child.try_wait().map_err(Failure::io(doing))? {
            Some(status) => break status.code() == Some(PROBE_PASSED),
            None if died.try_recv().is_ok() || started.elapsed() > PROBE_BUDGET => break false,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    hold::kill_group(&child);
    child.wait().map_err(Failure::io(doing))?;
    Ok(passed)
}
