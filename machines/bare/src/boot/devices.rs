//! Finds the devices on PCI and on the command line, then starts them.

use super::command_line::MemoryDevice;
use crate::console::print;
use crate::cpu::interrupts::{VECTOR_CARD, VECTOR_DISK};
use crate::cpu::{Processor, cores, ioapic};
use crate::end;
use crate::memory::paging::Paging;
use crate::pci;
use crate::virtio::block::BlockDevice;
use crate::virtio::net::CardQueues;
use crate::virtio::random::RandomDevice;
use crate::virtio::transport::{MemoryRegisters, Message, PciRegisters, Transport};
use crate::virtio::{DEVICE_BLOCK, DEVICE_NET, DEVICE_RANDOM};

const VENDOR_VIRTIO: u16 = 0x1AF4;

/// The first device of each kind.
#[derive(Default)]
pub(super) struct Devices {
    card: Option<Transport>,
    disk: Option<Transport>,
    random: Option<Transport>,
}

/// Finds devices on PCI, and those on the command line (`named`). Each of the `cores` gets its own
/// interrupt message of the card, if the card has enough of them. All other interrupts go to the
/// first core.
pub(super) fn find(
    paging: &mut Paging,
    processor: &Processor,
    named: &[Option<MemoryDevice>],
    cores: usize,
) -> Devices {
    let mut devices = Devices::default();
    pci::scan(|function| {
        let Some(device) = virtio_device(&function) else { return };
        let Some(place) = devices.place(device) else { return };
        let message =
            |core| Message { apic_id: cores::seat(core).apic_id(), vector: vector(device) };
        let receivers = if device == DEVICE_NET { cores } else { 1 };
        *place =
            PciRegisters::find(&function, paging, (0..receivers).map(message)).map(Transport::Pci);
    });
    for device in named.iter().flatten() {
        // SAFETY: the boot loader says that a device decodes these addresses.
        let registers = unsafe { paging.map_device(device.base, device.bytes) };
        let Some((registers, kind)) = MemoryRegisters::find(registers) else { continue };
        let Some(place) = devices.place(kind) else { continue };
        if ioapic::route(paging, device.line, vector(kind), processor.apic_id).is_some() {
            *place = Some(Transport::Memory(registers));
        }
    }
    devices
}

/// The virtio device type of the PCI function. A transitional function has an older id, and the
/// type in its subsystem id.
fn virtio_device(function: &pci::PciFunction) -> Option<u32> {
    const FIRST_TRANSITIONAL: u16 = 0x1000;
    const LAST_TRANSITIONAL: u16 = 0x103F;
    const FIRST_MODERN: u16 = 0x1040;
    const LAST_MODERN: u16 = 0x107F;
    match function.id {
        _ if function.vendor != VENDOR_VIRTIO => None,
        FIRST_TRANSITIONAL..=LAST_TRANSITIONAL => Some(u32::from(function.subsystem())),
        FIRST_MODERN..=LAST_MODERN => Some(u32::from(function.id - FIRST_MODERN)),
        _ => None,
    }
}

fn vector(device: u32) -> u8 {
    if device == DEVICE_NET { VECTOR_CARD } else { VECTOR_DISK }
}

impl Devices {
    /// The field for a device of this kind. `None` if a device of this kind was found before, or
    /// the machine does not use such devices.
    fn place(&mut self, device: u32) -> Option<&mut Option<Transport>> {
        let place = match device {
            DEVICE_NET => &mut self.card,
            DEVICE_BLOCK => &mut self.disk,
            DEVICE_RANDOM => &mut self.random,
            _ => return None,
        };
        place.is_none().then_some(place)
    }

    /// Starts the devices. The card gets a pair of queues for each of `cores`, if it has enough.
    /// Without a card or a disk the machine does not start.
    pub(super) fn start(self, cores: usize) -> (CardQueues, BlockDevice, Option<RandomDevice>) {
        let Some(card) = self.card else {
            end::refuse(format_args!("no virtio network card found"))
        };
        let Some(disk) = self.disk else { end::refuse(format_args!("no virtio disk found")) };
        let queues = CardQueues::start(card, cores).unwrap_or_else(|error| {
            end::refuse(format_args!("the network card cannot be used: {error}"))
        });
        let disk = BlockDevice::start(disk)
            .unwrap_or_else(|error| end::refuse(format_args!("the disk cannot be used: {error}")));
        let random = self.random.and_then(|random| RandomDevice::start(&random).ok());
        let about = queues.card();
        print!(
            "network card: {}, MTU {}, checksums by {}, segmentation by {} (IPv6: by {})",
            about.address,
            about.mtu,
            performer(about.offloads.checksum),
            performer(about.offloads.segmentation_ipv4),
            performer(about.offloads.segmentation_ipv6),
        );
        if about.queues > 1 {
            print!("network card: {} pairs of queues", about.queues);
        }
        let about = disk.disk();
        print!(
            "disk: {} sectors, {}",
            about.sectors,
            if about.durable { "durable" } else { "not durable" }
        );
        (queues, disk, random)
    }
}

fn performer(is_offloaded: bool) -> &'static str {
    if is_offloaded { "the card" } else { "software" }
}
