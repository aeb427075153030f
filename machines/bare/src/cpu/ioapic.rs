//! The I/O interrupt controllers (IOAPIC). Devices with an interrupt line instead of messages need
//! them: the serial port and virtio-mmio devices.

use crate::memory::paging::Paging;
use crate::mmio::Mmio;

const BASE_ADDRESS: u64 = 0xFEC0_0000;

/// The distance from the first controller to QEMU's second, which has the lines from 24 on.
const BASE_STRIDE: u64 = 0x1_0000;
const LINES: u32 = 24;

const SELECT: usize = 0x00;
const WINDOW: usize = 0x10;

const VERSION: u32 = 0x01;
const REDIRECTION: u32 = 0x10;

/// Routes `line` to `vector` on the core with the APIC id `apic_id`. The rising edge of the line
/// interrupts.
///
/// Errors: `None` if no controller has the line.
pub(crate) fn route(paging: &mut Paging, line: u32, vector: u8, apic_id: u32) -> Option<()> {
    let (controller, pin) = (line / LINES, line % LINES);
    if controller > 1 {
        return None;
    }
    // SAFETY: PCs have the first controller at `BASE_ADDRESS`, and QEMU has the second at
    // `BASE_STRIDE` above it. Other machines have registers or nothing at these addresses, but no
    // memory.
    let registers =
        unsafe { paging.map_device(BASE_ADDRESS + BASE_STRIDE * u64::from(controller), 4096) };
    let last_pin = read(&registers, VERSION) >> 16 & 0xFF;
    if pin > last_pin || last_pin == 0xFF {
        return None;
    }
    write(&registers, REDIRECTION + 2 * pin + 1, apic_id << 24);
    write(&registers, REDIRECTION + 2 * pin, u32::from(vector));
    Some(())
}

fn read(registers: &Mmio, number: u32) -> u32 {
    registers.write32(SELECT, number);
    registers.read32(WINDOW)
}

fn write(registers: &Mmio, number: u32, value: u32) {
    registers.write32(SELECT, number);
    registers.write32(WINDOW, value);
}
