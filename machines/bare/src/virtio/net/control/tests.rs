//! Tests of the control queue. The test acts as the card.

use super::*;
use crate::mmio::Mmio;
use crate::virtio::queue::tests::FakeDevice;
use core::ptr::NonNull;

/// Asks the card for 300 pairs, and checks the command that the card gets. Returns whether the
/// pairs are granted if the card answers with `answer`.
fn granted(answer: u8) -> bool {
    let register = Box::leak(Box::new(0_u32));
    // SAFETY: the register is leaked, and only this doorbell uses it.
    let register = unsafe { Mmio::new(NonNull::from(register).cast(), 4) };
    let mut control = Control::new(|_, _| Ok(Doorbell::new(register, 8))).unwrap();
    let mut card = FakeDevice::new(&control.queue);
    control.ask(300);
    let chain = card.next().unwrap();
    let [(command, 4, NEXT), (place, 1, WRITE)] = chain.parts[..] else {
        panic!("{:?}", chain.parts)
    };
    // SAFETY: the card may read and write the parts of the chain until it marks the chain as used.
    unsafe {
        assert_eq!(*(command as *const [u8; 4]), [4, 0, 44, 1]);
        *(place as *mut u8) = answer;
    }
    assert!(!control.queue.has_used());
    card.finish(chain.head, 1);
    assert!(control.queue.has_used());
    control.is_granted()
}

#[test]
fn card_is_told_the_number_of_queue_pairs_and_may_refuse() {
    assert!(granted(ANSWER_OK));
    assert!(!granted(1));
    assert!(!granted(ANSWER_PENDING));
}
