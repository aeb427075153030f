//! The console: the first serial port (16550A at 3F8h), one line at a time, each with the date
//! and time at which it was printed.
//!
//! Lines wait in a ring. The console passes them to the port as fast as the port takes them, 16
//! bytes at a time. So a real port at 115,200 baud never makes a turn wait. Lines that do not fit
//! into the ring are lost, and a later line reports the loss.
//!
//! Lines of several cores do not mix. A lock lets one core at a time put a line into the ring or
//! pass bytes to the port. A running core may have to wait some microseconds for this lock. The
//! code that receives and sends packets prints nothing.
//!
//! Invariants:
//! - The ring consists of atomics, and a line is visible only when it is complete. So the panic
//!   path can drain the ring in any state.
//! - A busy core that prints nothing reads the port only once in 50 ms. It then passes on waiting
//!   lines and checks for a key press.

use crate::clock;
use crate::cpu::Port;
use crate::shared::Lock;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};
use machine::Micros;

// SAFETY: 1. the port accesses no memory; 2. no other code relies on it.
const SERIAL: Port = unsafe { Port::new(0x3F8) };
const DATA: Port = SERIAL;
const INTERRUPT_ENABLE: Port = SERIAL.at(1);
const FIFO_CONTROL: Port = SERIAL.at(2);
const LINE_CONTROL: Port = SERIAL.at(3);
const MODEM_CONTROL: Port = SERIAL.at(4);
const LINE_STATUS: Port = SERIAL.at(5);
const SCRATCH: Port = SERIAL.at(7);

/// The port's line among the legacy interrupts.
pub(crate) const INTERRUPT_LINE: u32 = 4;

const INTERRUPT_ON_INPUT: u8 = 0b01;
const INTERRUPT_ON_ROOM: u8 = 0b10;
const STATUS_INPUT: u8 = 1;
const STATUS_ROOM: u8 = 1 << 5;

/// The number of bytes that the port takes when it reports that it has space.
const FIFO_BYTES: usize = 16;

const RING_BYTES: usize = 32 << 10;

/// The key that asks the machine to stop.
const CONTROL_C: u8 = 3;

/// The lock for the port and the ring.
static TURN: Lock<()> = Lock::new(());

static HAS_PORT: AtomicBool = AtomicBool::new(false);
static RING: [AtomicU8; RING_BYTES] = [const { AtomicU8::new(0) }; RING_BYTES];
/// The number of bytes ever put into the ring. `TAKEN` counts the bytes ever taken from it.
static PUT: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static LOST_LINES: AtomicUsize = AtomicUsize::new(0);
static INTERRUPTS: AtomicU8 = AtomicU8::new(0);
static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Prints one line.
macro_rules! print {
    ($($argument:tt)*) => { $crate::console::line(format_args!($($argument)*)) };
}
pub(crate) use print;

/// Sets up the port, if there is one: 115,200 baud, 8 bits, no parity.
pub(crate) fn start() {
    SCRATCH.write8(0xA5);
    if SCRATCH.read8() != 0xA5 {
        return;
    }
    INTERRUPT_ENABLE.write8(0);
    LINE_CONTROL.write8(0x80);
    DATA.write8(1);
    INTERRUPT_ENABLE.write8(0);
    LINE_CONTROL.write8(0x03);
    FIFO_CONTROL.write8(0x07);
    // Signals readiness, and connects the interrupt line of the port.
    MODEM_CONTROL.write8(0x0B);
    HAS_PORT.store(true, Relaxed);
}

/// Lets a key press end a sleep. The caller has routed the interrupt before.
pub(crate) fn enable_interrupt() {
    TURN.with(|()| set_interrupts(INTERRUPT_ON_INPUT));
}

/// Prints one line, with its date and time.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    TURN.with(|()| {
        put(format_args!("{} {text}\n", clock::stamp()));
        give();
    });
}

/// Passes as many bytes to the port as it takes now. Returns whether more bytes wait.
pub(crate) fn pump() -> bool {
    TURN.with(|()| give())
}

/// Passes bytes to the port before a sleep. If more bytes wait, the port ends the first core's
/// sleep when it can take them.
pub(crate) fn before_sleep() {
    if !has_waiting() && matches!(INTERRUPTS.load(Relaxed), 0 | INTERRUPT_ON_INPUT) {
        return;
    }
    TURN.with(|()| {
        let wanted =
            if give() { INTERRUPT_ON_INPUT | INTERRUPT_ON_ROOM } else { INTERRUPT_ON_INPUT };
        if INTERRUPTS.load(Relaxed) != wanted && INTERRUPTS.load(Relaxed) != 0 {
            set_interrupts(wanted);
        }
    });
}

/// Reads pressed keys. Only the first core calls it: the interrupt of the keys goes to that core.
pub(crate) fn read_keys() {
    if !HAS_PORT.load(Relaxed) {
        return;
    }
    for _ in 0..FIFO_BYTES {
        if LINE_STATUS.read8() & STATUS_INPUT == 0 {
            return;
        }
        if matches!(DATA.read8(), CONTROL_C | b'q') {
            STOP_REQUESTED.store(true, Relaxed);
        }
    }
}

/// Whether a key press asked the machine to stop.
pub(crate) fn stop_requested() -> bool {
    STOP_REQUESTED.load(Relaxed)
}

/// Takes the console lock from any core, at the end of the machine's life, when the other cores
/// have been stopped.
pub(crate) fn seize() {
    TURN.break_open();
}

/// Waits until all lines have been sent, or for `limit`. Call this only at the end of the machine's
/// life.
pub(crate) fn drain(limit: Micros) {
    clock::wait_until(limit, || !pump());
}

/// Passes as many bytes to the port as it takes now. Returns whether more bytes wait. The caller
/// has the lock.
fn give() -> bool {
    while has_waiting() {
        if LINE_STATUS.read8() & STATUS_ROOM == 0 {
            return true;
        }
        for _ in 0..FIFO_BYTES {
            let Some(byte) = next() else { break };
            DATA.write8(byte);
        }
    }
    report_loss();
    false
}

fn set_interrupts(bits: u8) {
    if HAS_PORT.load(Relaxed) {
        INTERRUPTS.store(bits, Relaxed);
        INTERRUPT_ENABLE.write8(bits);
    }
}

fn has_waiting() -> bool {
    PUT.load(Relaxed) != TAKEN.load(Relaxed) && HAS_PORT.load(Relaxed)
}

fn next() -> Option<u8> {
    let taken = TAKEN.load(Relaxed);
    if taken == PUT.load(Relaxed) {
        return None;
    }
    TAKEN.store(taken.wrapping_add(1), Relaxed);
    RING.get(taken % RING_BYTES).map(|byte| byte.load(Relaxed))
}

/// Reports how many lines were lost, once there is space for the report.
fn report_loss() {
    let lost = LOST_LINES.swap(0, Relaxed);
    if lost > 0 {
        put(format_args!("[console: {lost} lines lost]\n"));
    }
}

/// Puts a line into the ring, or counts it as lost if it does not fit. The caller has the lock.
fn put(text: fmt::Arguments<'_>) {
    let mut line = Line { end: PUT.load(Relaxed), is_cut: false };
    let _ = line.write_fmt(text);
    if line.is_cut {
        LOST_LINES.fetch_add(1, Relaxed);
    } else if HAS_PORT.load(Relaxed) {
        PUT.store(line.end, Relaxed);
    }
}

/// A line that is being written to the ring, with the line ends of a terminal.
struct Line {
    /// The number of bytes ever put into the ring, including this line.
    end: usize,
    is_cut: bool,
}

impl Line {
    fn put(&mut self, byte: u8) {
        match RING.get(self.end % RING_BYTES) {
            Some(place) if self.end.wrapping_sub(TAKEN.load(Relaxed)) < RING_BYTES => {
                place.store(byte, Relaxed);
                self.end = self.end.wrapping_add(1);
            }
            _ => self.is_cut = true,
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.put(b'\r');
            }
            self.put(byte);
        }
        Ok(())
    }
}
