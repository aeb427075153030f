//! The tables for exceptions and interrupts.
//!
//! No interrupt runs code of the server: the only effect of an interrupt of a device or the timer
//! is to end a `hlt`. An exception is a broken invariant: its handler prints the registers and
//! panics.
//!
//! Invariants:
//! - Interrupts are enabled only for the instruction `hlt` of [`super::sleep_until_interrupt`].
//! - Each class of vectors has its own stack, so that no entry nests in another on the same stack.
//!   The classes are devices, exceptions, double faults, and machine checks with NMIs.

use super::cores::{self, CORES_MAX};
use crate::memory::stacks::{Stack, Stacks};
use core::arch::asm;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

#[cfg(not(test))]
core::arch::global_asm!(include_str!("interrupts.s"));

unsafe extern "C" {
    static exception_entries: [[u8; 16]; EXCEPTIONS];
    static interrupt_entry_xapic: u8;
    static interrupt_entry_x2apic: u8;
    static interrupt_entry_spurious: u8;
}

const EXCEPTIONS: usize = 32;
const VECTORS: usize = 256;

const NMI: usize = 2;
const DOUBLE_FAULT: usize = 8;
const PAGE_FAULT: u64 = 14;
const MACHINE_CHECK: usize = 18;

/// The interrupt vectors in use. All their handlers do the same. The numbers differ only so that
/// the controller can tell the sources apart.
pub(crate) const VECTOR_TIMER: u8 = 0x40;
pub(crate) const VECTOR_CARD: u8 = 0x41;
pub(crate) const VECTOR_DISK: u8 = 0x42;
pub(crate) const VECTOR_CONSOLE: u8 = 0x43;
pub(crate) const VECTOR_WAKE: u8 = 0x44;
pub(crate) const VECTOR_SPURIOUS: u8 = 0xFF;

const CODE_SEGMENT: u64 = 0x00AF_9A00_0000_FFFF;
const DATA_SEGMENT: u64 = 0x00CF_9200_0000_FFFF;
const CODE_SELECTOR: u16 = 8;
const DATA_SELECTOR: u16 = 16;
const TSS_SELECTOR: u16 = 24;

const TSS_WORDS: usize = 26;
const TSS_BYTES: u64 = 4 * TSS_WORDS as u64;

/// The tables of one core: its segment table and its TSS, which has the addresses of its stacks.
/// The segment table cannot be shared, because the TSS descriptor has a busy bit.
#[repr(C, align(128))]
struct Tables {
    gdt: [AtomicU64; 5],
    tss: [AtomicU32; TSS_WORDS],
}

static TABLES: [Tables; CORES_MAX] = [const {
    Tables {
        gdt: [
            AtomicU64::new(0),
            AtomicU64::new(CODE_SEGMENT),
            AtomicU64::new(DATA_SEGMENT),
            AtomicU64::new(0),
            AtomicU64::new(0),
        ],
        tss: [const { AtomicU32::new(0) }; TSS_WORDS],
    }
}; CORES_MAX];

/// The interrupt table, which all cores share.
static IDT: [[AtomicU64; 2]; VECTORS] = [const { [const { AtomicU64::new(0) }; 2] }; VECTORS];

/// Fills the table that all cores share, and loads the first core's tables. `x2apic`: whether the
/// local interrupt controllers are accessed through registers.
pub(crate) fn install(x2apic: bool) {
    fill_idt(x2apic);
    load(&Stacks::of_image());
}

/// Loads the tables of the core that calls this function. `stacks`: the stacks of this core.
pub(crate) fn load(stacks: &Stacks) {
    #[expect(
        clippy::indexing_slicing,
        reason = "every core's number is below the number of tables"
    )]
    let tables = &TABLES[cores::this()];
    tables.fill(stacks);
    let gdt_pointer = TablePointer {
        limit: size_of_val(&tables.gdt) as u16 - 1,
        base: (&raw const tables.gdt) as u64,
    };
    let idt_pointer =
        TablePointer { limit: size_of_val(&IDT) as u16 - 1, base: (&raw const IDT) as u64 };
    // SAFETY: 1. both tables are complete and live for ever, and no other core loads these
    // segments; 2. the code and data segments equal those of the boot table, so the loaded
    // selectors stay right, and the far return reloads CS with an equal selector; 3. all stacks are
    // mapped; 4. FS and GS are not changed: loading GS would lose its base.
    unsafe {
        asm!(
            "lgdt [{gdt}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ds, {data:e}",
            "mov es, {data:e}",
            "mov ss, {data:e}",
            "ltr {tss:x}",
            "lidt [{idt}]",
            gdt = in(reg) &raw const gdt_pointer,
            idt = in(reg) &raw const idt_pointer,
            code = in(reg) u64::from(CODE_SELECTOR),
            data = in(reg) u64::from(DATA_SELECTOR),
            tss = in(reg) u64::from(TSS_SELECTOR),
            scratch = out(reg) _,
        );
    }
}

#[repr(C, packed)]
struct TablePointer {
    limit: u16,
    base: u64,
}

impl Tables {
    fn fill(&self, stacks: &Stacks) {
        // Intel SDM volume 3, 8.7: the interrupt stacks begin at byte 36, 8 bytes each. The offset
        // of the I/O map is beyond the limit, so the TSS has no I/O map.
        for stack in [Stack::Device, Stack::Exception, Stack::DoubleFault, Stack::MachineCheck] {
            let (word, top) = (9 + 2 * (stack as usize - 1), stacks.top(stack));
            for (place, value) in [(word, top as u32), (word + 1, (top >> 32) as u32)] {
                if let Some(entry) = self.tss.get(place) {
                    entry.store(value, Relaxed);
                }
            }
        }
        if let Some(entry) = self.tss.last() {
            entry.store((TSS_BYTES as u32) << 16, Relaxed);
        }
        let tss = (&raw const self.tss) as u64;
        let [_, _, _, low, high] = &self.gdt;
        // Intel SDM volume 3, 8.2.3: limit, base in three parts, type 9 (available 64-bit TSS),
        // present.
        low.store(
            (TSS_BYTES - 1) | (tss & 0xFF_FFFF) << 16 | 0x89 << 40 | (tss >> 24 & 0xFF) << 56,
            Relaxed,
        );
        high.store(tss >> 32, Relaxed);
    }
}

fn fill_idt(x2apic: bool) {
    let device =
        if x2apic { &raw const interrupt_entry_x2apic } else { &raw const interrupt_entry_xapic };
    for (vector, entry) in IDT.iter().enumerate() {
        let (handler, stack) = match vector {
            NMI | MACHINE_CHECK => (exception_handler(vector), Stack::MachineCheck),
            DOUBLE_FAULT => (exception_handler(vector), Stack::DoubleFault),
            _ if vector < EXCEPTIONS => (exception_handler(vector), Stack::Exception),
            _ if vector == usize::from(VECTOR_SPURIOUS) => {
                ((&raw const interrupt_entry_spurious) as u64, Stack::Device)
            }
            _ => (device as u64, Stack::Device),
        };
        let [low, high] = entry;
        // Interrupt gate (interrupts stay off), present.
        let gate = 0x8E00_u64 << 32;
        let place = handler & 0xFFFF | (handler >> 16 & 0xFFFF) << 48;
        low.store(place | u64::from(CODE_SELECTOR) << 16 | (stack as u64) << 32 | gate, Relaxed);
        high.store(handler >> 32, Relaxed);
    }
}

fn exception_handler(vector: usize) -> u64 {
    (&raw const exception_entries) as u64 + 16 * vector as u64
}

/// The registers at an exception, in the order in which `interrupts.s` and the processor push them.
#[repr(C)]
struct ExceptionFrame {
    r15: u64,
    r14: u64,
    r13: u64,
    r12: u64,
    r11: u64,
    r10: u64,
    r9: u64,
    r8: u64,
    rbp: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
    rbx: u64,
    rax: u64,
    vector: u64,
    error: u64,
    rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

/// Reports the exception and ends the machine's life. The entries of all exceptions call it.
#[unsafe(no_mangle)]
extern "C" fn exception_arrived(frame: &ExceptionFrame) -> ! {
    crate::end::fail(format_args!("{frame}"))
}

impl fmt::Display for ExceptionFrame {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.vector {
            0 => "division error",
            2 => "non-maskable interrupt",
            6 => "invalid instruction",
            8 => "double fault",
            13 => "general protection fault",
            PAGE_FAULT => "page fault",
            16 | 19 => "floating point error",
            17 => "misaligned access",
            18 => "machine check",
            _ => "exception",
        };
        write!(out, "{name} {} error {:#x} at {:#x}", self.vector, self.error, self.rip)?;
        if self.vector == PAGE_FAULT {
            write!(out, " touching {:#x}", fault_address())?;
        }
        write!(
            out,
            "\nrax {:x} rbx {:x} rcx {:x} rdx {:x} rsi {:x} rdi {:x} rbp {:x} rsp {:x}",
            self.rax, self.rbx, self.rcx, self.rdx, self.rsi, self.rdi, self.rbp, self.rsp
        )?;
        write!(
            out,
            "\nr8 {:x} r9 {:x} r10 {:x} r11 {:x} r12 {:x} r13 {:x} r14 {:x} r15 {:x} rflags {:x}",
            self.r8,
            self.r9,
            self.r10,
            self.r11,
            self.r12,
            self.r13,
            self.r14,
            self.r15,
            self.rflags
        )?;
        debug_assert!(self.cs == u64::from(CODE_SELECTOR) && self.ss <= u64::from(DATA_SELECTOR));
        Ok(())
    }
}

fn fault_address() -> u64 {
    let address: u64;
    // SAFETY: reading CR2 has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}
