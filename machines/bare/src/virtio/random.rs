//! The entropy source (virtio 1.2, section 5.4). It has one buffer, which the device may fill at
//! any time.

use super::lent::Lent;
use super::queue::{Events, Queue, WRITE};
use super::transport::{Doorbell, Interrupt, Transport};
use super::{DeviceError, agree, go};
use alloc::boxed::Box;
use alloc::vec;

const QUEUE: u16 = 0;
const ENTRIES: usize = 4;

/// The number of bytes requested at a time.
pub(crate) const RANDOM_BYTES: usize = 32;

/// A running entropy source.
pub(crate) struct RandomDevice {
    queue: Queue<ENTRIES>,
    doorbell: Doorbell,
    lent: Option<Lent>,
}

impl RandomDevice {
    /// Starts the device and requests bytes.
    pub(crate) fn start(transport: &Transport) -> Result<RandomDevice, DeviceError> {
        agree(transport, |_| 0)?;
        let queue = Queue::new(Events::ByFlag);
        // SAFETY: the addresses are those of the queue's memory, which lives for ever.
        let doorbell = unsafe {
            transport.start_queue(QUEUE, ENTRIES as u16, queue.addresses(), Interrupt::Never)
        }?;
        go(transport);
        let mut device = RandomDevice { queue, doorbell, lent: None };
        device.ask(vec![0; RANDOM_BYTES].into_boxed_slice());
        Ok(device)
    }

    /// The bytes that the device has delivered since the last call, if any. If the device has
    /// delivered bytes, this also requests more.
    pub(crate) fn take(&mut self) -> Option<[u8; RANDOM_BYTES]> {
        let (_, bytes) = self.queue.take()?;
        let lent = self.lent.take()?;
        // SAFETY: the device has used the only descriptor that is ever offered.
        let mut buffer = unsafe { lent.take_back() };
        let brought = buffer.first_chunk::<RANDOM_BYTES>().copied();
        buffer.fill(0);
        self.ask(buffer);
        brought.filter(|_| bytes as usize == RANDOM_BYTES)
    }

    fn ask(&mut self, buffer: Box<[u8]>) {
        let lent = Lent::new(buffer);
        // SAFETY: the buffer stays in `lent`, untouched, until the device has used the descriptor.
        unsafe { self.queue.describe(0, lent.address(), lent.bytes() as u32, WRITE) };
        self.lent = Some(lent);
        self.queue.offer(0);
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }
}
