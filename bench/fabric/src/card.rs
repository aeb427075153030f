//! One core as a [`Machine`]: one end of the wire as its card queue, the host's clocks, and a disk
//! in memory.
//!
//! The server's card has a queue for each core. It chooses a queue by a hash of a frame's addresses
//! and ports, as cards with receive-side scaling do. Frames other than TCP over IPv4 go to the
//! first queue. The card offers checksum and segmentation offload. Here this means that checksums
//! are never computed and large frames stay whole, as between a guest and its host.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant as Moment, SystemTime, UNIX_EPOCH};

use machine::{
    Card, CoreId, Disk, DiskCompletion, DiskRequest, Entropy, Ethernet, Frame, Instant, Machine,
    Offloads, OutgoingFrame, TransmitError, UnixTime,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::disk::MemoryDisk;
use crate::wire::End;

/// The owner of a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A core of the server.
    Server {
        /// The number of the server's cores.
        cores: u8,
    },
    /// A client of a server with this many cores.
    Client {
        /// The number of the client's end of the wire.
        end: u8,
        /// The number of the server's cores.
        cores: u8,
    },
}

/// The hardware address of the machine at the end `end`. All cores of the server use the address of
/// end 0.
fn hardware(end: u8) -> Ethernet {
    Ethernet([0x02, 0, 0, 0, 0, end])
}

/// One core.
pub(crate) struct FabricMachine {
    role: Role,
    end: End,
    disk: MemoryDisk,
    started: Moment,
    /// Becomes true when the server serves.
    serves: Arc<AtomicBool>,
    /// Whether a frame has arrived or a disk request has completed since the last
    /// [`FabricMachine::take_has_worked`].
    has_worked: bool,
}

impl FabricMachine {
    /// `serves` becomes true when the engine prints on its console that it serves.
    pub(crate) fn new(
        role: Role,
        end: End,
        disk: MemoryDisk,
        serves: Arc<AtomicBool>,
    ) -> FabricMachine {
        FabricMachine { role, end, disk, started: Moment::now(), serves, has_worked: false }
    }

    /// Whether a frame has arrived or a disk request has completed since the last call.
    pub(crate) fn take_has_worked(&mut self) -> bool {
        std::mem::take(&mut self.has_worked)
    }
}

impl Entropy for FabricMachine {
    fn random(&mut self, bytes: &mut [u8]) {
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match getrandom(rest, GetRandomFlags::empty()) {
                Ok(more) => filled += more,
                Err(error) => assert!(
                    error == Errno::INTR,
                    "without randomness nothing may be served: {error}"
                ),
            }
        }
    }
}

impl Machine for FabricMachine {
    fn now(&mut self) -> Instant {
        Instant(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn wall_clock(&mut self) -> UnixTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixTime(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn print(&mut self, line: fmt::Arguments<'_>) {
        if line.to_string().starts_with("serving ") {
            self.serves.store(true, Ordering::Release);
        }
    }

    fn card(&self) -> Card {
        let (end, queues) = match self.role {
            Role::Server { cores } => (0, cores),
            Role::Client { end, .. } => (end, 1),
        };
        let offloads =
            Offloads { checksum: true, segmentation_ipv4: true, segmentation_ipv6: true };
        Card { address: hardware(end), mtu: 1500, offloads, queues }
    }

    fn receive(&mut self) -> Option<Frame> {
        let frame = self.end.receive()?;
        self.has_worked = true;
        Some(frame)
    }

    fn give_back(&mut self, frame: Frame) {
        self.end.give_back(frame);
    }

    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        match self.role {
            Role::Client { cores, .. } => {
                let queue = queue_of(frame.head, cores);
                self.end.transmit(frame, |server| server == queue)
            }
            Role::Server { .. } => {
                let to = frame.head.first_chunk::<6>().copied().map(Ethernet);
                let is_group = frame.head.first().is_some_and(|first| first & 1 == 1);
                self.end.transmit(frame, |client| is_group || to == Some(hardware(client)))
            }
        }
    }

    fn disk(&self) -> Disk {
        self.disk.describe()
    }

    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        self.disk.request(request);
        Ok(())
    }

    fn completed(&mut self) -> Option<DiskCompletion> {
        let completion = self.disk.completed()?;
        self.has_worked = true;
        Some(completion)
    }

    /// Does nothing, because no core sleeps.
    fn wake(&mut self, _core: CoreId) {}

    fn ring_doorbells(&mut self) {
        self.end.collect_buffers();
    }

    fn is_low_on_memory(&mut self) -> bool {
        false
    }

    /// Never: the machine stops when its thread ends.
    fn stop_requested(&mut self) -> bool {
        false
    }
}

/// The queue in which a server with `cores` cores receives a frame.
pub(crate) fn queue_of(frame: &[u8], cores: u8) -> u8 {
    let is_tcp = frame.get(12..14) == Some(&[0x08, 0x00]) && frame.get(23) == Some(&6);
    let names = frame.get(26..38).filter(|_| is_tcp).unwrap_or_default();
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = names.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    if is_tcp { ((hash >> 32) % u64::from(cores)) as u8 } else { 0 }
}
