//! The stacks of a core: one to run on, and one for each class of interrupts. Under each stack is a
//! guard page, which is never mapped.
//!
//! The first core's stacks are part of the image (`link.ld`). The stacks of the other cores are
//! taken from free memory when the number of cores is known.

use super::PAGE_BYTES;

unsafe extern "C" {
    static __main_stack_top: u8;
    static __device_stack_top: u8;
    static __exception_stack_top: u8;
    static __double_fault_stack_top: u8;
    static __machine_check_stack_top: u8;
}

/// The stacks of a core. Each value except 0 is the number of an interrupt stack in the TSS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stack {
    Main = 0,
    Device = 1,
    Exception = 2,
    DoubleFault = 3,
    MachineCheck = 4,
}

/// The number of stacks of a core. `BYTES` has the size of each, as in `link.ld`.
const STACKS: usize = 5;
const BYTES: [u64; STACKS] = [512 << 10, 4 << 10, 32 << 10, 32 << 10, 32 << 10];

/// The number of bytes of free memory for the stacks of one more core, including guard pages.
pub(crate) const CORE_BYTES: u64 = {
    let [main, device, exception, double_fault, machine_check] = BYTES;
    main + device + exception + double_fault + machine_check + STACKS as u64 * PAGE_BYTES
};

/// The stacks of one core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stacks {
    tops: [u64; STACKS],
}

impl Stacks {
    /// The stacks of the first core.
    pub(crate) fn of_image() -> Stacks {
        let tops = [
            &raw const __main_stack_top,
            &raw const __device_stack_top,
            &raw const __exception_stack_top,
            &raw const __double_fault_stack_top,
            &raw const __machine_check_stack_top,
        ];
        Stacks { tops: tops.map(|top| top as u64) }
    }

    /// The stacks of another core, in [`CORE_BYTES`] bytes of memory that begin at `start`.
    pub(crate) fn at(start: u64) -> Stacks {
        let mut end = start;
        Stacks {
            tops: BYTES.map(|bytes| {
                end += PAGE_BYTES + bytes;
                end
            }),
        }
    }

    pub(crate) fn top(&self, stack: Stack) -> u64 {
        self.tops.get(stack as usize).copied().unwrap_or_default()
    }

    /// The top and the size in bytes of each stack.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.tops.into_iter().zip(BYTES)
    }
}

#[cfg(test)]
mod tests;
