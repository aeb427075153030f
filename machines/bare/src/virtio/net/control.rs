//! The card's control queue (section 5.1.6.5). The driver uses it once, to set the number of pairs
//! of queues.

use super::super::DeviceError;
use super::super::queue::{Addresses, Events, NEXT, Queue, WRITE};
use super::super::transport::{Doorbell, Interrupt, Transport};
use crate::clock;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use machine::Micros;

const ENTRIES: usize = 4;

/// Section 5.1.6.5.5: the class of commands about pairs, and the command that sets their number.
const CLASS_PAIRS: u8 = 4;
const COMMAND_SET: u8 = 0;

const ANSWER_OK: u8 = 0;
const ANSWER_PENDING: u8 = 0xFF;

/// The longest time for which the boot waits for the card's answer.
const PATIENCE: Micros = Micros::from_millis(100);

/// The bytes that the card reads, and the byte that it writes as its answer.
struct Command {
    words: [AtomicU8; 4],
    answer: AtomicU8,
}

pub(super) struct Control {
    queue: Queue<ENTRIES>,
    doorbell: Doorbell,
    command: &'static Command,
}

impl Control {
    /// Starts queue `number` as the control queue. The card has not been started yet.
    pub(super) fn start(transport: &Transport, number: u16) -> Result<Control, DeviceError> {
        // SAFETY: the addresses are those of this queue. Its memory lives for ever.
        Control::new(|size, addresses| unsafe {
            transport.start_queue(number, size, addresses, Interrupt::Never)
        })
    }

    /// `start`: passes the size and the addresses of the queue to the card.
    fn new(
        start: impl FnOnce(u16, Addresses) -> Result<Doorbell, DeviceError>,
    ) -> Result<Control, DeviceError> {
        let queue = Queue::new(Events::ByFlag);
        let doorbell = start(ENTRIES as u16, queue.addresses())?;
        let command =
            Command { words: [0; 4].map(AtomicU8::new), answer: AtomicU8::new(ANSWER_PENDING) };
        Ok(Control { queue, doorbell, command: Box::leak(Box::new(command)) })
    }

    /// Makes the running card use `count` pairs. Returns whether the card agrees.
    pub(super) fn use_pairs(mut self, count: u16) -> bool {
        self.ask(count);
        clock::wait_until(PATIENCE, || self.queue.has_used()) && self.is_granted()
    }

    fn ask(&mut self, count: u16) {
        let [low, high] = count.to_le_bytes();
        for (place, byte) in self.command.words.iter().zip([CLASS_PAIRS, COMMAND_SET, low, high]) {
            place.store(byte, Relaxed);
        }
        // SAFETY: both parts of the command are atomics that live for ever.
        unsafe {
            self.queue.describe(
                0,
                (&raw const self.command.words) as u64,
                size_of_val(&self.command.words) as u32,
                NEXT,
            );
            self.queue.describe(1, (&raw const self.command.answer) as u64, 1, WRITE);
        }
        self.queue.link(0, 1);
        self.queue.offer(0);
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    fn is_granted(&self) -> bool {
        self.command.answer.load(Relaxed) == ANSWER_OK
    }
}

#[cfg(test)]
mod tests;
