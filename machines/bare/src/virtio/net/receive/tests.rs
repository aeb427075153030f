//! Tests of the receive queue. The test acts as the card.

use super::*;
use crate::mmio::Mmio;
use crate::virtio::queue::tests::FakeDevice;
use core::ptr::NonNull;

fn receiver() -> (Receiver, FakeDevice<ENTRIES>) {
    let register = Box::leak(Box::new(0_u32));
    // SAFETY: the register is leaked, and only this doorbell uses it.
    let register = unsafe { Mmio::new(NonNull::from(register).cast(), 4) };
    let mut receiver =
        Receiver::new(Events::ByIndex, |_, _| Ok(Doorbell::new(register, 0))).unwrap();
    receiver.ring_doorbell();
    let device = FakeDevice::new(&receiver.queue);
    (receiver, device)
}

/// Lets the card put `bytes` into its next buffer.
fn deliver(device: &mut FakeDevice<ENTRIES>, bytes: &[u8]) {
    let chain = device.next().expect("the card has no buffer");
    let [(address, length, flags)] = chain.parts[..] else { panic!("a buffer must be one part") };
    assert!(flags == WRITE && bytes.len() <= length as usize);
    // SAFETY: the buffer is lent to the card, which is this test, and long enough.
    unsafe { (address as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    device.finish(chain.head, bytes.len() as u32);
}

fn with_header(flags: u8, buffers: u16, bytes: &[u8]) -> Vec<u8> {
    let mut whole = vec![flags, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    whole.extend(buffers.to_le_bytes());
    whole.extend(bytes);
    whole
}

#[test]
fn frame_is_delivered_in_its_receive_buffer() {
    let (mut receiver, mut device) = receiver();
    assert!(receiver.next().is_none());
    deliver(&mut device, &with_header(0, 1, b"frame one"));
    deliver(&mut device, &with_header(FLAG_CHECKSUM_VALID, 1, b"frame two"));
    let one = receiver.next().unwrap();
    let two = receiver.next().unwrap();
    assert_eq!((one.bytes(), one.checksum()), (&b"frame one"[..], Checksum::Unknown));
    assert_eq!((two.bytes(), two.checksum()), (&b"frame two"[..], Checksum::Verified));
    assert!(receiver.next().is_none());
}

#[test]
fn returned_receive_buffers_are_reused() {
    let (mut receiver, mut device) = receiver();
    for number in 0..10 * ENTRIES as u32 {
        deliver(&mut device, &with_header(0, 1, &number.to_le_bytes()));
        let frame = receiver.next().unwrap();
        assert_eq!(frame.bytes(), number.to_le_bytes());
        receiver.give_back(frame);
        receiver.ring_doorbell();
    }
}

#[test]
fn retained_frames_starve_the_card_not_the_machine() {
    let (mut receiver, mut device) = receiver();
    let kept: Vec<Frame> = (0..ENTRIES)
        .map(|_| {
            deliver(&mut device, &with_header(0, 1, b"x"));
            receiver.next().unwrap()
        })
        .collect();
    assert!(device.next().is_none());
    kept.into_iter().for_each(|frame| receiver.give_back(frame));
    receiver.give_back(Frame::new(
        vec![0; BUFFER_BYTES].into_boxed_slice(),
        0..0,
        Checksum::Unknown,
    ));
    receiver.ring_doorbell();
    assert_eq!(core::iter::from_fn(|| device.next()).count(), ENTRIES);
}

#[test]
fn long_frame_is_joined_and_its_parts_are_returned_at_once() {
    let (mut receiver, mut device) = receiver();
    let long: Vec<u8> = (0..60_000_u32).map(|i| (i % 251) as u8).collect();
    let (first, rest) = long.split_at(BUFFER_BYTES - HEADER_BYTES);
    for round in 0..20 {
        let parts = 1 + rest.chunks(BUFFER_BYTES).count() as u16;
        deliver(&mut device, &with_header(FLAG_NEEDS_CHECKSUM, parts, first));
        rest.chunks(BUFFER_BYTES).for_each(|part| deliver(&mut device, part));
        let frame = receiver.next().unwrap();
        assert!(frame.bytes() == long && frame.checksum() == Checksum::Verified, "round {round}");
        assert_eq!(receiver.free.len(), 0);
        receiver.give_back(frame);
        receiver.ring_doorbell();
    }
}

#[test]
fn long_frame_without_a_long_buffer_is_dropped() {
    let (mut receiver, mut device) = receiver();
    let deliver_long = |receiver: &mut Receiver, device: &mut FakeDevice<ENTRIES>| {
        deliver(device, &with_header(0, 2, b"long "));
        deliver(device, b"frame");
        receiver.next()
    };
    let kept: Vec<_> =
        (0..LONG_BUFFERS).map(|_| deliver_long(&mut receiver, &mut device).unwrap()).collect();
    assert!(deliver_long(&mut receiver, &mut device).is_none());
    kept.into_iter().for_each(|frame| receiver.give_back(frame));
    assert_eq!(deliver_long(&mut receiver, &mut device).unwrap().bytes(), b"long frame");
}

#[test]
fn misbehaving_card_gets_no_byte_outside_its_buffers() {
    let (mut receiver, mut device) = receiver();
    let chain = device.next().unwrap();
    device.finish(chain.head, u32::MAX);
    device.finish(chain.head, 100);
    let frame = receiver.next().unwrap();
    assert_eq!(frame.bytes().len(), BUFFER_BYTES - HEADER_BYTES);
    assert!(receiver.next().is_none(), "used twice");
    deliver(&mut device, &with_header(0, 9, b"more is said than comes"));
    assert_eq!(receiver.next().unwrap().bytes(), b"more is said than comes");
    let chain = device.next().unwrap();
    device.finish(chain.head, 3);
    assert!(receiver.next().unwrap().bytes().is_empty());
}

#[test]
fn frame_that_arrives_before_sleep_prevents_the_sleep() {
    let (receiver, mut device) = receiver();
    assert!(receiver.may_sleep());
    let chain = device.next().unwrap();
    assert!(device.finish(chain.head, 20), "the card must interrupt");
    assert!(!receiver.may_sleep(), "the frame must prevent the sleep");
}
