//! Tests of the path's decisions, without a clock and without an interface.

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Sends `count` frames of 1,000 bytes, one in each `gap`. Returns the time and the number of each
/// departed frame.
fn carried(spec: &str, seed: u64, count: u32, gap: Duration) -> (Vec<(Duration, u32)>, Path) {
    let mut path = Path::new(spec.parse().unwrap(), seed, 0);
    let mut out = Vec::new();
    let mut leave = |path: &mut Path, now: Duration| {
        while let Some(due) = path.next_due().filter(|due| *due <= now) {
            let frame = path.next_departure(due).unwrap();
            out.push((due, number(&frame)));
            path.give_back(frame);
        }
    };
    for number in 0..count {
        let now = gap * number;
        leave(&mut path, now);
        path.arrived(now, &frame(number));
    }
    leave(&mut path, Duration::from_secs(1_000_000));
    (out, path)
}

fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![0; 1000];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    // The number is in the Ethernet header, which is never corrupted.
    frame[..4].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]])
}

fn numbers(out: &[(Duration, u32)]) -> Vec<u32> {
    out.iter().map(|(_, number)| *number).collect()
}

#[test]
fn a_good_wire_changes_nothing() {
    let (out, path) = carried("", 1, 1000, MILLISECOND);
    assert_eq!(numbers(&out), (0..1000).collect::<Vec<_>>());
    assert!(out.iter().all(|(due, number)| *due == MILLISECOND * *number));
    assert_eq!(
        path.counters(),
        FrameCounts { arrived: 1000, departed: 1000, ..FrameCounts::default() }
    );
}

#[test]
fn decisions_depend_on_the_seed() {
    let spec = "loss=0.1,repeat=0.1,reorder=0.1,corrupt=0.1";
    assert_eq!(carried(spec, 7, 2000, MILLISECOND).0, carried(spec, 7, 2000, MILLISECOND).0);
    assert_ne!(carried(spec, 7, 2000, MILLISECOND).0, carried(spec, 8, 2000, MILLISECOND).0);
    let (there, back) = (Path::new(Spec::default(), 7, 0), Path::new(Spec::default(), 7, 1));
    assert_ne!(there.draw(Draw::Lost, 0), back.draw(Draw::Lost, 0));
}

#[test]
fn a_decision_does_not_depend_on_other_probabilities() {
    let lost = |spec: &str| {
        let there = numbers(&carried(spec, 3, 3000, MILLISECOND).0);
        (0..3000).filter(|number| !there.contains(number)).collect::<Vec<u32>>()
    };
    let expected = lost("loss=0.05");
    assert!(!expected.is_empty());
    assert_eq!(lost("loss=0.05,repeat=0.2,reorder=0.2,corrupt=0.2,delay=50"), expected);
}

#[test]
fn each_impairment_happens_at_its_probability() {
    let (_, path) =
        carried("loss=0.05,repeat=0.02,reorder=0.1,corrupt=0.03", 5, 50_000, MILLISECOND);
    let counters = path.counters();
    let near = |count: u64, of: u64, expected: f64| {
        (count as f64 / of as f64 - expected).abs() < 0.1 * expected
    };
    assert!(near(counters.lost, 50_000, 0.05), "{counters}");
    let rest = 50_000 - counters.lost;
    assert!(
        near(counters.repeated, rest, 0.02) && near(counters.overtaken, rest, 0.1),
        "{counters}"
    );
    assert!(near(counters.corrupted, rest, 0.03), "{counters}");
    assert_eq!(counters.departed, rest + counters.repeated);
}

#[test]
fn frames_are_delayed_and_overtaken_ones_even_more() {
    let (out, path) = carried("delay=20,reorder=0.1,late=3", 1, 1000, MILLISECOND);
    let late = |due: Duration, number: u32| due - MILLISECOND * number;
    assert!(out.iter().all(|(due, number)| [20, 23].contains(&late(*due, *number).as_millis())));
    assert_eq!(
        out.iter().filter(|(due, number)| late(*due, *number).as_millis() == 23).count() as u64,
        path.counters().overtaken
    );
    assert!(!numbers(&out).is_sorted());
}

#[test]
fn the_rate_is_exact_and_idle_time_is_not_saved() {
    // A frame takes 1,024 bytes on the line, which is one millisecond at 8.192 Mbit/s.
    let (out, _) = carried("rate=8.192", 1, 100, Duration::ZERO);
    assert!(
        out.iter().zip(1..).all(|((due, _), count)| due.as_micros() / 10 == (MILLISECOND * count).as_micros() / 10)
    );
    let (out, _) = carried("rate=8.192", 1, 100, 10 * MILLISECOND);
    assert!(
        out.iter()
            .all(
                |(due, number)| (*due - 10 * MILLISECOND * *number).as_micros().abs_diff(1000) <= 1
            )
    );
}

#[test]
fn a_full_queue_drops_new_frames() {
    let (out, path) = carried("rate=8.192,queue=10", 1, 100, Duration::ZERO);
    assert_eq!(numbers(&out), (0..out.len() as u32).collect::<Vec<_>>());
    assert!((9..=10).contains(&out.len()), "{}", out.len());
    assert_eq!(path.counters().dropped, 100 - out.len() as u64);
}

#[test]
fn one_bit_is_flipped_after_the_ethernet_header_but_not_in_arp() {
    let mut path = Path::new("corrupt=1".parse().unwrap(), 1, 0);
    for count in 0..2000 {
        path.arrived(Duration::ZERO, &frame(count));
        let out = path.next_departure(Duration::ZERO).unwrap();
        let flipped: u32 =
            out.iter().zip(frame(count)).map(|(one, other)| (one ^ other).count_ones()).sum();
        assert_eq!(flipped, 1);
        assert_eq!(out[..ETHERNET_BYTES], frame(count)[..ETHERNET_BYTES]);
    }
    let mut question = frame(1);
    question[12..14].copy_from_slice(&TYPE_ARP);
    path.arrived(Duration::ZERO, &question);
    assert_eq!(path.next_departure(Duration::ZERO).unwrap(), question);
}

#[test]
fn the_frames_in_flight_are_bounded() {
    let (out, path) = carried("delay=1000", 1, FRAMES_MAX as u32 + 10, Duration::ZERO);
    assert_eq!((out.len(), path.counters().dropped), (FRAMES_MAX, 10));
}
