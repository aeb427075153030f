//! The registers of a virtio device: on PCI (virtio 1.2, section 4.1) or memory-mapped (section
//! 4.2).
//!
//! After a device has started, the driver uses only its doorbells, and on memory-mapped registers
//! the acknowledgement of interrupts.

use super::DeviceError;
use super::queue::Addresses;
use crate::memory::paging::Paging;
use crate::mmio::Mmio;
use crate::pci::PciFunction;

/// A virtio device's registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transport {
    Pci(PciRegisters),
    Memory(MemoryRegisters),
}

/// The registers of section 4.1.4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PciRegisters {
    common: Mmio,
    doorbells: Mmio,
    doorbell_stride: u32,
    device: Mmio,
    /// The number of interrupt messages that the device can send.
    messages: u16,
}

/// The registers of section 4.2.2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryRegisters {
    registers: Mmio,
}

/// The register that notifies a device of new entries in one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doorbell {
    register: Mmio,
    queue: u16,
}

impl Doorbell {
    pub(crate) fn new(register: Mmio, queue: u16) -> Doorbell {
        Doorbell { register, queue }
    }

    pub(crate) fn ring(&self) {
        // The register has 16 bits on PCI, and 32 otherwise.
        if self.register.bytes() == 2 {
            self.register.write16(0, self.queue);
        } else {
            self.register.write32(0, u32::from(self.queue));
        }
    }
}

mod pci {
    //! The offsets of the common configuration (section 4.1.4.3), in bytes.
    pub(super) const FEATURE_SELECT: usize = 0x00;
    pub(super) const FEATURE: usize = 0x04;
    pub(super) const DRIVER_FEATURE_SELECT: usize = 0x08;
    pub(super) const DRIVER_FEATURE: usize = 0x0C;
    pub(super) const CONFIGURATION_MESSAGE: usize = 0x10;
    pub(super) const STATUS: usize = 0x14;
    pub(super) const QUEUE_SELECT: usize = 0x16;
    pub(super) const QUEUE_SIZE: usize = 0x18;
    pub(super) const QUEUE_MESSAGE: usize = 0x1A;
    pub(super) const QUEUE_ENABLE: usize = 0x1C;
    pub(super) const QUEUE_DOORBELL: usize = 0x1E;
    pub(super) const QUEUE_ADDRESSES: [usize; 3] = [0x20, 0x28, 0x30];
    pub(super) const COMMON_BYTES: usize = 0x38;

    pub(super) const NO_MESSAGE: u16 = 0xFFFF;
    pub(super) const CAPABILITY_VENDOR: u8 = 0x09;
    pub(super) const PART_COMMON: u8 = 1;
    pub(super) const PART_DOORBELLS: u8 = 2;
    pub(super) const PART_DEVICE: u8 = 4;
}

mod memory {
    //! The offsets of the registers of section 4.2.2, in bytes.
    pub(super) const MAGIC: usize = 0x000;
    pub(super) const VERSION: usize = 0x004;
    pub(super) const DEVICE: usize = 0x008;
    pub(super) const FEATURE: usize = 0x010;
    pub(super) const FEATURE_SELECT: usize = 0x014;
    pub(super) const DRIVER_FEATURE: usize = 0x020;
    pub(super) const DRIVER_FEATURE_SELECT: usize = 0x024;
    pub(super) const QUEUE_SELECT: usize = 0x030;
    pub(super) const QUEUE_SIZE_MAX: usize = 0x034;
    pub(super) const QUEUE_SIZE: usize = 0x038;
    pub(super) const QUEUE_READY: usize = 0x044;
    pub(super) const DOORBELL: usize = 0x050;
    pub(super) const INTERRUPT: usize = 0x060;
    pub(super) const INTERRUPT_ACKNOWLEDGE: usize = 0x064;
    pub(super) const STATUS: usize = 0x070;
    pub(super) const QUEUE_ADDRESSES: [usize; 3] = [0x080, 0x090, 0x0A0];
    pub(super) const DEVICE_REGISTERS: usize = 0x100;

    pub(super) const MAGIC_VALUE: u32 = 0x7472_6976;
}

/// The receiver and the vector of an interrupt message of a device. They make one entry of its
/// MSI-X table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) apic_id: u32,
    pub(crate) vector: u8,
}

impl PciRegisters {
    /// Finds the registers of a virtio function, and gives it as many of the interrupt messages
    /// `messages` as it can send. `None` if the function has no registers of version 1, or cannot
    /// send interrupt messages. Without them the device could not wake a sleeping core.
    pub(crate) fn find(
        function: &PciFunction,
        paging: &mut Paging,
        messages: impl Iterator<Item = Message>,
    ) -> Option<PciRegisters> {
        function.enable();
        let part = |kind: u8, paging: &mut Paging| {
            let capability = function.capabilities().find(|capability| {
                capability.id == pci::CAPABILITY_VENDOR
                    && (function.read32(capability.register) >> 24) as u8 == kind
            })?;
            let word =
                |number: u8| Some(function.read32(capability.register.checked_add(4 * number)?));
            let base = function.base_address(word(1)? as u8)?;
            // SAFETY: the firmware assigned these addresses to the function.
            let registers =
                unsafe { paging.map_device(base + u64::from(word(2)?), u64::from(word(3)?)) };
            Some((registers, if kind == pci::PART_DOORBELLS { word(4)? } else { 0 }))
        };
        let (common, _) = part(pci::PART_COMMON, paging)?;
        let (doorbells, doorbell_stride) = part(pci::PART_DOORBELLS, paging)?;
        let (device, _) = part(pci::PART_DEVICE, paging).unwrap_or((common, 0));
        let messages = send_messages(function, paging, messages)?;
        let is_whole = common.bytes() >= pci::COMMON_BYTES;
        is_whole.then_some(PciRegisters { common, doorbells, doorbell_stride, device, messages })
    }
}

/// Fills the function's table of messages (PCI 3.0, 6.8.2). Returns the number of filled entries.
fn send_messages(
    function: &PciFunction,
    paging: &mut Paging,
    messages: impl Iterator<Item = Message>,
) -> Option<u16> {
    const ENTRY_BYTES: u64 = 16;
    let (base, offset, entries) = function.enable_messages()?;
    let base = function.base_address(base)? + u64::from(offset);
    let mut count = 0;
    for (message, number) in messages.zip(0..entries) {
        // SAFETY: the firmware assigned these addresses to the function.
        let entry =
            unsafe { paging.map_device(base + ENTRY_BYTES * u64::from(number), ENTRY_BYTES) };
        entry.write32(0, 0xFEE0_0000 | message.apic_id << 12);
        entry.write32(4, 0);
        entry.write32(8, u32::from(message.vector));
        // The message is not masked.
        entry.write32(12, 0);
        count = number + 1;
    }
    Some(count)
}

impl MemoryRegisters {
    /// The device with these `registers`, and its type. `None` if the registers are not those of a
    /// device of version 1.
    pub(crate) fn find(registers: Mmio) -> Option<(MemoryRegisters, u32)> {
        let is_device = registers.read32(memory::MAGIC) == memory::MAGIC_VALUE
            && registers.read32(memory::VERSION) == 2;
        let device = if is_device { registers.read32(memory::DEVICE) } else { 0 };
        (device != 0).then_some((MemoryRegisters { registers }, device))
    }
}

impl Transport {
    pub(crate) fn status(&self) -> u8 {
        match self {
            Transport::Pci(device) => device.common.read8(pci::STATUS),
            Transport::Memory(device) => device.registers.read32(memory::STATUS) as u8,
        }
    }

    pub(crate) fn write_status(&self, status: u8) {
        match self {
            Transport::Pci(device) => device.common.write8(pci::STATUS, status),
            Transport::Memory(device) => {
                device.registers.write32(memory::STATUS, u32::from(status))
            }
        }
    }

    pub(crate) fn offered_features(&self) -> u64 {
        let half = |number| match self {
            Transport::Pci(device) => {
                device.common.write32(pci::FEATURE_SELECT, number);
                device.common.read32(pci::FEATURE)
            }
            Transport::Memory(device) => {
                device.registers.write32(memory::FEATURE_SELECT, number);
                device.registers.read32(memory::FEATURE)
            }
        };
        u64::from(half(0)) | u64::from(half(1)) << 32
    }

    pub(crate) fn accept_features(&self, features: u64) {
        for (number, half) in [(0, features as u32), (1, (features >> 32) as u32)] {
            match self {
                Transport::Pci(device) => {
                    device.common.write32(pci::DRIVER_FEATURE_SELECT, number);
                    device.common.write32(pci::DRIVER_FEATURE, half);
                }
                Transport::Memory(device) => {
                    device.registers.write32(memory::DRIVER_FEATURE_SELECT, number);
                    device.registers.write32(memory::DRIVER_FEATURE, half);
                }
            }
        }
    }

    /// Sets the addresses of queue `number`, and whether the device interrupts for it.
    ///
    /// Errors: `Queue` if the device has no queue of `size` entries with this number.
    ///
    /// # Safety
    /// `addresses` are those of a queue's memory, which the device may access until it is reset.
    pub(crate) unsafe fn start_queue(
        &self,
        number: u16,
        size: u16,
        addresses: Addresses,
        interrupt: Interrupt,
    ) -> Result<Doorbell, DeviceError> {
        match self {
            Transport::Pci(device) => device.start_queue(number, size, addresses, interrupt),
            Transport::Memory(device) => device.start_queue(number, size, addresses),
        }
        .ok_or(DeviceError::Queue)
    }

    /// The number of cores that the device can interrupt. An interrupt line reaches only one core.
    pub(crate) fn messages(&self) -> u16 {
        match self {
            Transport::Pci(device) => device.messages,
            Transport::Memory(_) => 1,
        }
    }

    /// Lets a device with an interrupt line raise the line again. Called before a sleep.
    pub(crate) fn acknowledge_interrupt(&self) {
        if let Transport::Memory(device) = self {
            let pending = device.registers.read32(memory::INTERRUPT);
            if pending != 0 {
                device.registers.write32(memory::INTERRUPT_ACKNOWLEDGE, pending);
            }
        }
    }

    /// A byte of the device's own registers.
    pub(crate) fn device8(&self, offset: usize) -> u8 {
        match self {
            Transport::Pci(device) => device.device.read8(offset),
            Transport::Memory(device) => device.registers.read8(memory::DEVICE_REGISTERS + offset),
        }
    }

    pub(crate) fn write_device8(&self, offset: usize, value: u8) {
        match self {
            Transport::Pci(device) => device.device.write8(offset, value),
            Transport::Memory(device) => {
                device.registers.write8(memory::DEVICE_REGISTERS + offset, value)
            }
        }
    }

    pub(crate) fn device16(&self, offset: usize) -> u16 {
        match self {
            Transport::Pci(device) => device.device.read16(offset),
            Transport::Memory(device) => device.registers.read16(memory::DEVICE_REGISTERS + offset),
        }
    }

    pub(crate) fn device32(&self, offset: usize) -> u32 {
        match self {
            Transport::Pci(device) => device.device.read32(offset),
            Transport::Memory(device) => device.registers.read32(memory::DEVICE_REGISTERS + offset),
        }
    }
}

/// Whether a queue interrupts, and by which of the device's messages. A device with an interrupt
/// line ignores this value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interrupt {
    Never,
    Message(u16),
}

impl PciRegisters {
    fn start_queue(
        &self,
        number: u16,
        size: u16,
        addresses: Addresses,
        interrupt: Interrupt,
    ) -> Option<Doorbell> {
        let common = &self.common;
        common.write16(pci::CONFIGURATION_MESSAGE, pci::NO_MESSAGE);
        common.write16(pci::QUEUE_SELECT, number);
        if common.read16(pci::QUEUE_SIZE) < size {
            return None;
        }
        common.write16(pci::QUEUE_SIZE, size);
        let message = match interrupt {
            Interrupt::Message(number) => number,
            Interrupt::Never => pci::NO_MESSAGE,
        };
        common.write16(pci::QUEUE_MESSAGE, message);
        for (register, address) in pci::QUEUE_ADDRESSES.into_iter().zip(addresses.0) {
            common.write32(register, address as u32);
            common.write32(register + 4, (address >> 32) as u32);
        }
        let place = usize::from(common.read16(pci::QUEUE_DOORBELL)) * self.doorbell_stride as usize;
        let doorbell = self.doorbells.part(place, 2)?;
        common.write16(pci::QUEUE_ENABLE, 1);
        Some(Doorbell::new(doorbell, number))
    }
}

impl MemoryRegisters {
    fn start_queue(&self, number: u16, size: u16, addresses: Addresses) -> Option<Doorbell> {
        let registers = &self.registers;
        registers.write32(memory::QUEUE_SELECT, u32::from(number));
        if registers.read32(memory::QUEUE_SIZE_MAX) < u32::from(size) {
            return None;
        }
        registers.write32(memory::QUEUE_SIZE, u32::from(size));
        for (register, address) in memory::QUEUE_ADDRESSES.into_iter().zip(addresses.0) {
            registers.write32(register, address as u32);
            registers.write32(register + 4, (address >> 32) as u32);
        }
        registers.write32(memory::QUEUE_READY, 1);
        Some(Doorbell::new(registers.part(memory::DOORBELL, 4)?, number))
    }
}
