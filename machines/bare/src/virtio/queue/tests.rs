//! Tests of a queue. The test acts as the device.

use super::*;

/// The device's end of a queue.
pub(crate) struct FakeDevice<const N: usize> {
    rings: &'static Rings<N>,
    seen: u16,
    used: u16,
}

/// One chain as the device sees it: its head, and the address, length and flags of each part.
pub(crate) struct Chain {
    pub(crate) head: u16,
    pub(crate) parts: Vec<(u64, u32, u16)>,
}

impl<const N: usize> FakeDevice<N> {
    pub(crate) fn new(queue: &Queue<N>) -> FakeDevice<N> {
        FakeDevice { rings: queue.rings(), seen: 0, used: 0 }
    }

    /// The next chain that was published.
    pub(crate) fn next(&mut self) -> Option<Chain> {
        if self.rings.available.index.load(Relaxed) == self.seen {
            return None;
        }
        let head = self.rings.available.ring[usize::from(self.seen) % N].load(Relaxed);
        self.seen = self.seen.wrapping_add(1);
        let mut parts = Vec::new();
        let mut index = head;
        loop {
            let descriptor = &self.rings.descriptors[usize::from(index)];
            let flags = descriptor.flags.load(Relaxed);
            parts.push((descriptor.address.load(Relaxed), descriptor.bytes.load(Relaxed), flags));
            if flags & NEXT == 0 {
                return Some(Chain { head, parts });
            }
            index = descriptor.next.load(Relaxed);
            assert!(parts.len() <= N, "a chain must end");
        }
    }

    /// Marks the chain as used. Returns whether the driver asked for an interrupt at it.
    pub(crate) fn finish(&mut self, head: u16, bytes: u32) -> bool {
        let element = &self.rings.used.ring[usize::from(self.used) % N];
        element.head.store(u32::from(head), Relaxed);
        element.bytes.store(bytes, Relaxed);
        let wanted = self.rings.available.used_event.load(Relaxed);
        let is_wanted = wanted == self.used && self.rings.available.flags.load(Relaxed) == 0;
        self.used = self.used.wrapping_add(1);
        self.rings.used.index.store(self.used, Release);
        is_wanted
    }

    /// Requests a notification for the next entry that the device has not seen.
    fn ask_for_doorbell(&self) {
        self.rings.used.available_event.store(self.seen, Relaxed);
    }
}

fn queue() -> (Queue<8>, FakeDevice<8>) {
    let queue = Queue::new(Events::ByIndex);
    let device = FakeDevice::new(&queue);
    (queue, device)
}

#[test]
fn offered_chain_is_seen_only_after_it_is_published() {
    let (mut queue, mut device) = queue();
    queue.offer(3);
    queue.offer(5);
    assert!(device.next().is_none());
    queue.publish();
    assert_eq!([device.next().unwrap().head, device.next().unwrap().head], [3, 5]);
    assert!(device.next().is_none());
}

#[test]
fn used_chains_are_taken_once_across_index_wrap() {
    let (mut queue, mut device) = queue();
    for round in 0..70_000_u32 {
        let head = (round % 8) as u16;
        queue.offer(head);
        queue.publish();
        let chain = device.next().unwrap();
        device.finish(chain.head, round);
        assert_eq!(queue.take(), Some((head, round)));
        assert_eq!(queue.take(), None);
    }
}

#[test]
fn doorbell_rings_only_at_the_requested_entry() {
    let (mut queue, mut device) = queue();
    queue.offer(0);
    assert!(queue.publish(), "a device that saw nothing yet gets no notification");
    queue.offer(1);
    assert!(!queue.publish(), "the device was notified twice");
    device.next();
    device.next();
    device.ask_for_doorbell();
    assert!(!queue.publish(), "the device was notified without a new entry");
    queue.offer(2);
    queue.offer(3);
    assert!(queue.publish());
}

#[test]
fn device_interrupts_once_after_a_request() {
    let (mut queue, mut device) = queue();
    (0..6).for_each(|head| queue.offer(head));
    queue.publish();
    assert!(!device.finish(0, 0));
    queue.take();
    queue.wake_on_next();
    assert!(!queue.has_used());
    assert!(device.finish(1, 0));
    assert!(!device.finish(2, 0));
    assert_eq!(core::iter::from_fn(|| queue.take()).count(), 2);
}

#[test]
fn head_beyond_the_queue_is_masked() {
    let (mut queue, mut device) = queue();
    device.finish(0xFFFF, 0);
    assert_eq!(queue.take(), Some((7, 0)));
}
