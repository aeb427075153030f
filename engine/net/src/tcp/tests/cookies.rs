//! SYN cookies: the options that they return, how long they are valid, and that they cannot be
//! guessed.

use machine::{Instant, Micros};

use crate::tcp::*;

const NOW: Instant = Instant(1_000_000_000);
const IRS: SequenceNumber = SequenceNumber(u32::MAX);
const OFFSET: u32 = 12_345;

fn syn(options: Options) -> SegmentRepr<'static> {
    SegmentRepr { sequence: IRS, flags: TcpFlags::SYN, options, ..SegmentRepr::default() }
}

fn completing(answer: &SegmentToSend) -> SegmentRepr<'static> {
    let timestamps =
        answer.options.timestamps.map(|stamps| Timestamps { value: 500, echo: stamps.value });
    SegmentRepr {
        sequence: answer.acknowledgment,
        acknowledgment: answer.sequence + 1,
        flags: TcpFlags::ACK,
        options: Options { timestamps, ..Options::default() },
        ..SegmentRepr::default()
    }
}

#[test]
fn a_cookie_returns_the_segment_size() {
    for (announced, kept) in
        [(None, 536), (Some(1), 64), (Some(1300), 1220), (Some(1460), 1460), (Some(9000), 1460)]
    {
        let mut cookies = Cookies::new(&[1; 16], 1460);
        let answer = cookies.answer(
            NOW,
            &9u64,
            &syn(Options { mss: announced, ..Options::default() }),
            OFFSET,
        );
        assert_eq!(
            (answer.flags, answer.acknowledgment),
            (TcpFlags::SYN.with(TcpFlags::ACK), IRS + 1)
        );
        let handshake = cookies.completed(NOW, &9u64, &completing(&answer), OFFSET).unwrap();
        assert_eq!((handshake.iss, handshake.irs, handshake.mss), (answer.sequence, IRS, kept));
        assert_eq!((handshake.peer_window_shift, handshake.sack_permitted), (None, false));
    }
}

#[test]
fn timestamps_return_the_other_options() {
    for window_scale in [None, Some(0), Some(7), Some(14)] {
        for sack_permitted in [false, true] {
            for step in 0..70 {
                let now = NOW + Micros::from_millis(step);
                let timestamps = Some(Timestamps { value: 499, echo: 0 });
                let options = Options {
                    mss: Some(1460),
                    window_scale,
                    timestamps,
                    sack_permitted,
                    ..Options::default()
                };
                let mut cookies = Cookies::new(&[1; 16], 1460);
                let answer = cookies.answer(now, &9u64, &syn(options), OFFSET);
                assert_eq!(answer.options.window_scale.is_some(), window_scale.is_some());
                let later = now + Micros::from_millis(30);
                let handshake =
                    cookies.completed(later, &9u64, &completing(&answer), OFFSET).unwrap();
                assert_eq!(
                    (handshake.peer_window_shift, handshake.sack_permitted),
                    (window_scale, sack_permitted)
                );
                assert_eq!(handshake.mss, 1448);
                let clock = handshake.timestamps.unwrap();
                assert!(
                    !TimestampClock { recent: answer.options.timestamps.unwrap().value, ..clock }
                        .has_seen_later_than(clock.stamps(now).value),
                    "our clock never goes back"
                );
                assert!((30_000..100_000).contains(&handshake.round_trip.unwrap().0));
            }
        }
    }
}

#[test]
fn a_cookie_is_valid_for_one_peer_one_secret_and_two_minutes() {
    let mut cookies = Cookies::new(&[1; 16], 1460);
    let segment = completing(&cookies.answer(NOW, &9u64, &syn(Options::default()), OFFSET));
    assert!(cookies.completed(NOW + Micros::from_secs(60), &9u64, &segment, OFFSET).is_some());
    assert_eq!(cookies.completed(NOW, &8u64, &segment, OFFSET), None);
    assert_eq!(Cookies::new(&[2; 16], 1460).completed(NOW, &9u64, &segment, OFFSET), None);
    cookies.answer(NOW + Micros::from_secs(130), &7u64, &syn(Options::default()), OFFSET);
    assert_eq!(cookies.completed(NOW + Micros::from_secs(130), &9u64, &segment, OFFSET), None);
    let other = SegmentRepr { sequence: segment.sequence + 1, ..segment };
    assert_eq!(cookies.completed(NOW, &9u64, &other, OFFSET), None);
    let reset = SegmentRepr { flags: TcpFlags::ACK.with(TcpFlags::RST), ..segment };
    assert_eq!(cookies.completed(NOW, &9u64, &reset, OFFSET), None);
}

#[test]
fn a_million_guesses_find_no_cookie() {
    let mut cookies = Cookies::new(&[1; 16], 1460);
    let segment = completing(&cookies.answer(NOW, &1u64, &syn(Options::default()), OFFSET));
    for guess in 0..1_000_000u32 {
        let acknowledgment = SequenceNumber(guess.wrapping_mul(2_654_435_761));
        let guess = SegmentRepr { acknowledgment, ..segment };
        assert!(
            acknowledgment == segment.acknowledgment
                || cookies.completed(NOW, &9u64, &guess, OFFSET).is_none()
        );
    }
}

#[test]
fn without_issued_cookies_none_is_accepted() {
    let mut cookies = Cookies::new(&[1; 16], 1460);
    let segment = completing(&cookies.answer(NOW, &9u64, &syn(Options::default()), OFFSET));
    assert_eq!(Cookies::new(&[1; 16], 1460).completed(NOW, &9u64, &segment, OFFSET), None);
}
