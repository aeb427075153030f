//! PCI: finds all functions by configuration mechanism #1, and the addresses of their registers.
//!
//! The firmware assigns the addresses. A function without addresses is not used.

use crate::cpu::Port;

// SAFETY: 1. the two ports change the configuration of PCI functions. A function accesses memory
// only after its driver has made it a bus master and given it addresses; 2. no other code relies on
// the ports.
const ADDRESS: Port = unsafe { Port::new(0xCF8) };
const DATA: Port = ADDRESS.at(4);

const DEVICES: u8 = 32;
const FUNCTIONS: u8 = 8;
const BUSES: usize = 256;
/// A limit that is longer than the list of capabilities of any function.
const CAPABILITIES_MAX: usize = 48;

const REGISTER_ID: u8 = 0x00;
const REGISTER_COMMAND: u8 = 0x04;
const REGISTER_HEADER: u8 = 0x0C;
const REGISTER_BAR: u8 = 0x10;
const REGISTER_BUSES: u8 = 0x18;
const REGISTER_CAPABILITIES: u8 = 0x34;

const COMMAND_MEMORY: u32 = 1 << 1;
const COMMAND_BUS_MASTER: u32 = 1 << 2;
const COMMAND_NO_LINE_INTERRUPT: u32 = 1 << 10;
const STATUS_CAPABILITIES: u32 = 1 << 20;

const HEADER_MULTIFUNCTION: u32 = 1 << 23;
const HEADER_KIND: u32 = 0x7F << 16;
const HEADER_BRIDGE: u32 = 1 << 16;

const CAPABILITY_MSIX: u8 = 0x11;
/// The maximum number of interrupt messages of one function.
const MESSAGES_MAX: u16 = 2048;

/// One function of one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PciFunction {
    bus: u8,
    device: u8,
    function: u8,
    pub(crate) vendor: u16,
    pub(crate) id: u16,
}

/// One capability: its id, and the offset of its first register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capability {
    pub(crate) id: u8,
    pub(crate) register: u8,
}

/// Calls `found` with every function on every bus.
pub(crate) fn scan(mut found: impl FnMut(PciFunction)) {
    let mut is_known = [false; BUSES];
    is_known[0] = true;
    // The bus behind a bridge has a higher number than the bus of the bridge. So one pass in
    // ascending order finds all buses.
    for bus in 0..=u8::MAX {
        if is_known.get(usize::from(bus)) != Some(&true) {
            continue;
        }
        scan_bus(bus, |function, header| {
            if header & HEADER_KIND == HEADER_BRIDGE {
                let secondary = function.read32(REGISTER_BUSES) >> 8 & 0xFF;
                if let Some(known) = is_known.get_mut(secondary as usize) {
                    *known = true;
                }
            } else {
                found(function);
            }
        });
    }
}

fn scan_bus(bus: u8, mut found: impl FnMut(PciFunction, u32)) {
    for device in 0..DEVICES {
        for function in 0..FUNCTIONS {
            let mut place = PciFunction { bus, device, function, vendor: 0, id: 0 };
            let id = place.read32(REGISTER_ID);
            if id == u32::MAX {
                if function == 0 {
                    break;
                }
                continue;
            }
            (place.vendor, place.id) = (id as u16, (id >> 16) as u16);
            let header = place.read32(REGISTER_HEADER);
            found(place, header);
            if function == 0 && header & HEADER_MULTIFUNCTION == 0 {
                break;
            }
        }
    }
}

impl PciFunction {
    /// Reads a configuration register. `register`: its offset in bytes, a multiple of 4.
    pub(crate) fn read32(&self, register: u8) -> u32 {
        ADDRESS.write32(self.address(register));
        DATA.read32()
    }

    fn write32(&self, register: u8, value: u32) {
        ADDRESS.write32(self.address(register));
        DATA.write32(value);
    }

    fn address(&self, register: u8) -> u32 {
        let place = u32::from(self.bus) << 16
            | u32::from(self.device) << 11
            | u32::from(self.function) << 8;
        1 << 31 | place | u32::from(register & 0xFC)
    }

    /// The function's subsystem id.
    pub(crate) fn subsystem(&self) -> u16 {
        (self.read32(0x2C) >> 16) as u16
    }

    /// Lets the function respond at its addresses and access memory, and disables its interrupt
    /// line.
    pub(crate) fn enable(&self) {
        let command = self.read32(REGISTER_COMMAND) & 0xFFFF;
        self.write32(
            REGISTER_COMMAND,
            command | COMMAND_MEMORY | COMMAND_BUS_MASTER | COMMAND_NO_LINE_INTERRUPT,
        );
    }

    /// The value of base address register `number`, which the firmware has set. `None` if the
    /// register is for I/O ports, or was not set.
    pub(crate) fn base_address(&self, number: u8) -> Option<u64> {
        const IO: u32 = 1;
        const KIND: u32 = 0b110;
        const KIND_64: u32 = 0b100;
        if number > 5 {
            return None;
        }
        let register = REGISTER_BAR + 4 * number;
        let low = self.read32(register);
        if low & IO != 0 {
            return None;
        }
        let high = if low & KIND == KIND_64 && number < 5 { self.read32(register + 4) } else { 0 };
        let address = u64::from(low & !0xF) | u64::from(high) << 32;
        (address != 0).then_some(address)
    }

    /// The function's capabilities.
    pub(crate) fn capabilities(&self) -> impl Iterator<Item = Capability> + '_ {
        let has_any = self.read32(REGISTER_COMMAND) & STATUS_CAPABILITIES != 0;
        let mut next = if has_any { self.read32(REGISTER_CAPABILITIES) as u8 & 0xFC } else { 0 };
        core::iter::from_fn(move || {
            let register = next;
            let header = (register != 0).then(|| self.read32(register))?;
            next = (header >> 8) as u8 & 0xFC;
            Some(Capability { id: header as u8, register })
        })
        .take(CAPABILITIES_MAX)
    }

    /// Enables the function's interrupt messages. Returns the location of its message table: the
    /// number of the base address register, the offset, and the number of entries.
    pub(crate) fn enable_messages(&self) -> Option<(u8, u32, u16)> {
        const ENABLE: u32 = 1 << 31;
        const MASK_ALL: u32 = 1 << 30;
        let capability = self.capabilities().find(|capability| capability.id == CAPABILITY_MSIX)?;
        let control = self.read32(capability.register);
        self.write32(capability.register, control & !MASK_ALL | ENABLE);
        let table = self.read32(capability.register.checked_add(4)?);
        Some((table as u8 & 7, table & !7, (control >> 16) as u16 % MESSAGES_MAX + 1))
    }
}
