//! Tests of the queues. Most compare a queue with a simple model.

use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

use chance::Dice;
use machine::{Instant, Micros};

use crate::points;
use crate::{
    Budget, Countdown, DelayQueue, EntryPoint, FrameId, FrameTable, GateId, Gates, Passage,
    ResumeQueue,
};

extern crate std;

fn frame(index: u32) -> FrameId {
    FrameId::new(index, 0)
}

#[test]
fn a_removed_frame_is_not_found_after_its_slot_is_reused() {
    let mut table = FrameTable::with_capacity(1);
    let first = table.insert("first").unwrap();
    assert_eq!(table.remove(first), Some("first"));
    let second = table.insert("second").unwrap();
    assert_eq!(first.index(), second.index());
    assert_eq!(table.get(first), None);
    assert_eq!(table.remove(first), None);
    assert_eq!(table.get(second), Some(&"second"));
    assert_eq!(FrameId::from_bits(second.to_bits()), second);
}

#[test]
fn a_full_table_returns_the_frame() {
    let mut table = FrameTable::with_capacity(3);
    let ids: Vec<_> = (0..3).map(|value| table.insert(value).unwrap()).collect();
    assert_eq!(table.insert(3), Err(3));
    assert_eq!((table.len(), table.capacity()), (3, 3));
    assert_eq!(table.remove(ids[1]), Some(1));
    let again = table.insert(4).unwrap();
    assert_eq!(again.index(), ids[1].index());
    assert_eq!(table.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [0, 4, 2]);
    assert_eq!(table.id_at(1), Some(again));
    assert!(FrameTable::<u8>::with_capacity(0).insert(1).is_err());
}

#[test]
fn a_countdown_is_done_only_after_its_last_event() {
    let mut countdown = Countdown::new(2);
    countdown.expect_one_more();
    assert_eq!((countdown.arrived(), countdown.arrived()), (false, false));
    assert!(!countdown.is_done());
    assert!(countdown.arrived());
    assert!(countdown.is_done());
}

#[test]
#[should_panic(expected = "is not counted")]
fn an_event_too_many_is_a_broken_invariant() {
    Countdown::new(0).arrived();
}

#[test]
fn a_budget_of_two_units_is_spent_after_two() {
    let mut budget = Budget::new(2);
    assert!(budget.take() && budget.take() && budget.is_spent());
    assert!(!budget.take());
}

#[test]
fn frames_resume_once_in_the_order_of_readiness() {
    let mut queue = ResumeQueue::with_capacity(4);
    for index in [2, 0, 2, 3, 0] {
        queue.resume(frame(index));
    }
    queue.begin_turn();
    let ran: Vec<_> = core::iter::from_fn(|| queue.next_ready()).collect();
    assert_eq!(ran, [frame(2), frame(0), frame(3)]);
    assert!(queue.is_empty());
}

#[test]
fn a_frame_that_resumes_itself_runs_in_the_next_turn() {
    let mut queue = ResumeQueue::with_capacity(2);
    queue.resume(frame(0));
    queue.resume(frame(1));
    for _ in 0..3 {
        queue.begin_turn();
        let mut ran = 0;
        while let Some(ready) = queue.next_ready() {
            queue.resume(ready);
            ran += 1;
        }
        assert_eq!(ran, 2);
    }
}

#[test]
fn a_wake_up_reaches_the_newest_frame_of_a_slot() {
    let mut queue = ResumeQueue::with_capacity(1);
    queue.resume(FrameId::new(0, 7));
    queue.resume(FrameId::new(0, 8));
    queue.begin_turn();
    assert_eq!(queue.next_ready(), Some(FrameId::new(0, 8)));
    assert_eq!(queue.next_ready(), None);
}

#[test]
fn the_resume_queue_never_overflows() {
    let mut dice = Dice::new(0x5eed);
    let mut queue = ResumeQueue::with_capacity(16);
    for _ in 0..10_000 {
        match dice.below(8) {
            0 => queue.begin_turn(),
            1 => drop(queue.next_ready()),
            _ => queue.resume(FrameId::new(dice.below(16) as u32, dice.below(3) as u32)),
        }
        assert!(queue.len() <= 16);
    }
}

#[test]
fn a_gate_serves_first_come_first_served() {
    let gate = GateId(0);
    let mut gates = Gates::new(1, 4);
    assert_eq!(gates.enter(gate, frame(3)), Passage::Entered);
    for index in [1, 0, 2] {
        assert_eq!(gates.enter(gate, frame(index)), Passage::Queued);
    }
    assert_eq!(gates.leave(gate, frame(3)), Some(frame(1)));
    gates.abandon(frame(2));
    gates.abandon(frame(2));
    assert_eq!(gates.leave(gate, frame(1)), Some(frame(0)));
    assert_eq!(gates.leave(gate, frame(0)), None);
    assert_eq!(gates.owner(gate), None);
    assert_eq!(gates.enter(gate, frame(2)), Passage::Entered);
}

#[test]
#[should_panic(expected = "only the owner")]
fn only_the_owner_leaves_a_gate() {
    let mut gates = Gates::new(1, 2);
    let _ = gates.enter(GateId(0), frame(0));
    gates.leave(GateId(0), frame(1));
}

#[test]
fn gates_agree_with_plain_queues() {
    let mut dice = Dice::new(0xca7e);
    let mut gates = Gates::new(3, 12);
    let mut model: [VecDeque<u32>; 3] = Default::default();
    for _ in 0..20_000 {
        let (gate, index) = (dice.below(3) as usize, dice.below(12) as u32);
        let busy = model.iter().any(|queue| queue.contains(&index));
        match dice.below(3) {
            0 if !busy => {
                let passage = gates.enter(GateId(gate as u32), frame(index));
                assert_eq!(passage == Passage::Entered, model[gate].is_empty());
                model[gate].push_back(index);
            }
            1 => {
                let Some(owner) = model[gate].pop_front() else { continue };
                assert_eq!(
                    gates.leave(GateId(gate as u32), frame(owner)),
                    model[gate].front().map(|next| frame(*next))
                );
            }
            _ if model.iter().all(|queue| queue.front() != Some(&index)) => {
                gates.abandon(frame(index));
                model.iter_mut().for_each(|queue| queue.retain(|waiting| *waiting != index));
            }
            _ => {}
        }
    }
}

#[test]
fn a_deadline_never_comes_early_and_never_a_tick_late() {
    let mut queue = DelayQueue::with_capacity(1, Instant(0));
    for deadline in [0, 1, 999, 1_000, 1_001, 63_999, 64_000, 4_096_000, 1 << 40, 1 << 60] {
        let mut queue_at_start = DelayQueue::with_capacity(1, Instant(0));
        queue_at_start.set(frame(0), Instant(deadline));
        if deadline > 0 {
            assert_eq!(queue_at_start.next_due(Instant(deadline - 1)), None, "early: {deadline}");
        }
        let late = (deadline).next_multiple_of(1_000);
        assert_eq!(queue_at_start.next_due(Instant(late)), Some(frame(0)), "late: {deadline}");
    }
    queue.set(frame(0), Instant(u64::MAX));
    assert_eq!(queue.next_due(Instant(u64::MAX - 1_000_000)), None);
}

#[test]
fn a_stale_cancel_does_not_cancel_a_deadline() {
    let mut queue = DelayQueue::with_capacity(2, Instant(0));
    queue.set(frame(0), Instant(5_000));
    queue.cancel(frame(0));
    queue.set(FrameId::new(1, 4), Instant(5_000));
    queue.cancel(FrameId::new(1, 3));
    assert_eq!(queue.next_due(Instant(9_000)), Some(FrameId::new(1, 4)));
    assert_eq!(queue.next_due(Instant(9_000)), None);
    assert_eq!(queue.next_deadline(), None);
}

#[test]
fn the_delay_queue_agrees_with_a_sorted_map() {
    const SLOTS: u64 = 64;
    for seed in 1..50 {
        let mut dice = Dice::new(seed);
        let mut now = Instant(dice.below(1 << 45));
        let mut queue = DelayQueue::with_capacity(SLOTS as usize, now);
        let mut model: BTreeMap<u32, Instant> = BTreeMap::new();
        for _ in 0..2_000 {
            let index = dice.below(SLOTS) as u32;
            match dice.below(4) {
                0 | 1 => {
                    let span = 1 << dice.below(40);
                    let deadline = now + Micros(dice.below(span));
                    queue.set(frame(index), deadline);
                    model.insert(index, deadline);
                }
                2 => {
                    queue.cancel(frame(index));
                    model.remove(&index);
                }
                _ => {
                    now = now + Micros(dice.below(1 << 22));
                    while let Some(due) = queue.next_due(now) {
                        let deadline = model.remove(&(due.index() as u32)).expect("it was set");
                        assert!(deadline <= now, "seed {seed}: early");
                    }
                    let floor = Instant(now.0 / 1_000 * 1_000);
                    assert!(model.values().all(|deadline| *deadline > floor), "seed {seed}: late");
                }
            }
            match (queue.next_deadline(), model.values().min()) {
                (Some(next), Some(earliest)) => {
                    assert!(next.0 <= earliest.0.next_multiple_of(1_000), "seed {seed}")
                }
                (None, Some(earliest)) => panic!("seed {seed}: {earliest} is forgotten"),
                // A cancelled deadline may cause one search that finds nothing.
                (_, None) => {}
            }
        }
    }
}

points! {
    /// Points of one subsystem.
    enum Early of 3;
    /// The first.
    First,
    /// The second.
    Second,
}

points! {
    /// Points of another subsystem.
    enum Late of 4;
    /// The only one.
    Only,
}

#[test]
fn a_wait_point_belongs_to_one_subsystem_only() {
    for point in [Early::First, Early::Second] {
        assert_eq!((Early::of(point.entry()), Late::of(point.entry())), (Some(point), None));
    }
    assert_eq!(
        (Early::of(Late::Only.entry()), Late::of(Late::Only.entry())),
        (None, Some(Late::Only))
    );
    assert_eq!(Late::of(EntryPoint::new(4, 1)), None, "there is no such point");
}
