//! The image: the entry that the boot code calls, the allocator, the panic handler, and the program
//! to run.

#[cfg(feature = "selftest")]
mod selftest;
#[cfg(not(feature = "selftest"))]
mod serving;

use bare::{Allocator, boot, end};
use core::panic::PanicInfo;
#[cfg(feature = "selftest")]
use selftest::run;
#[cfg(not(feature = "selftest"))]
use serving::run;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::new();

/// Boots the machine and runs the program. The entry code calls it on the main stack, in long mode.
#[unsafe(no_mangle)]
extern "C" fn image_main(start_info: u64, entry_stamp: u64) -> ! {
    // SAFETY: 1. the entry code calls this once, on the main stack, with interrupts off; 2. it
    // passes on the start info of the boot loader, and has mapped the first GiB.
    let machine = unsafe { boot::start(start_info, entry_stamp, &ALLOCATOR) };
    run(machine)
}

#[panic_handler]
fn panic_arrived(info: &PanicInfo<'_>) -> ! {
    end::fail(format_args!("{info}"))
}
