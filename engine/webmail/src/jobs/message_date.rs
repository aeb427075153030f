//! The time in a message's `Date` field, beside the time of its arrival.
//!
//! Lists and conversations are in the order of arrival, which senders cannot choose. The page of a
//! message also shows the time in its date field if the two differ. Attributions and forwarded
//! headers name the time in the date field, since it is part of the message. An impossible time
//! does not count there: a message cannot have been sent long after its arrival.

use alloc::format;
use alloc::string::String;

use machine::UnixTime;
use message::header::SentDate;

use crate::moments::Moment;
use crate::zone::{Zone, offset_in_words};

/// The difference in seconds from which the page shows both times.
const APART_SECONDS: u64 = 600;

/// The maximum number of seconds by which the clock of a sender may be fast.
const FAST_SECONDS_MAX: u64 = 86_400;

/// Times before 1980 come from programs without a clock.
const FIRST_SECONDS: u64 = 315_532_800;

/// The time in the date field, if it differs from the arrival by more than some minutes.
pub(super) fn sent_apart(sent: Option<SentDate>, arrived: UnixTime) -> Option<UnixTime> {
    let is_apart = |time: &UnixTime| time.seconds().abs_diff(arrived.seconds()) > APART_SECONDS;
    sent.map(|sent| sent.time).filter(is_apart)
}

/// The time when a message was written, for an attribution: `3 Nov 2026, 14:05 (+0100)`.
pub(super) fn for_attribution(sent: Option<SentDate>, arrived: UnixTime, zone: &Zone) -> String {
    let time = possible(sent, arrived).map_or(arrived, |sent| sent.time);
    format!("{} ({})", Moment::of(time, zone).in_words(), zone.offset(time))
}

/// The time when a message was written, for the header of a forwarded message. It is in the zone of
/// the author, if that zone is known.
pub(super) fn for_forwarding(sent: Option<SentDate>, arrived: UnixTime, zone: &Zone) -> String {
    let Some(SentDate { time, zone_minutes }) = possible(sent, arrived) else {
        return for_attribution(None, arrived, zone);
    };
    let minutes = i64::from(zone_minutes);
    let local = UnixTime::from_seconds(time.seconds().saturating_add_signed(minutes * 60));
    format!("{} ({})", Moment::of(local, &Zone::UTC).in_words(), offset_in_words(minutes))
}

fn possible(sent: Option<SentDate>, arrived: UnixTime) -> Option<SentDate> {
    let range = FIRST_SECONDS..=arrived.seconds().saturating_add(FAST_SECONDS_MAX);
    sent.filter(|sent| range.contains(&sent.time.seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::ZoneCache;

    /// 2026-11-03T14:05:06Z.
    const ARRIVED: UnixTime = UnixTime::from_seconds(1_793_714_706);

    fn sent(seconds: u64, zone_minutes: i16) -> Option<SentDate> {
        Some(SentDate { time: UnixTime::from_seconds(seconds), zone_minutes })
    }

    #[test]
    fn date_field_is_shown_if_it_differs_from_the_arrival() {
        let arrived = ARRIVED.seconds();
        for close in [arrived, arrived - 600, arrived + 600] {
            assert_eq!(sent_apart(sent(close, 0), ARRIVED), None);
        }
        for apart in [0, arrived - 601, arrived + 601, 253_402_300_799] {
            assert_eq!(
                sent_apart(sent(apart, 0), ARRIVED),
                Some(UnixTime::from_seconds(apart)),
                "{apart}"
            );
        }
        assert_eq!(sent_apart(None, ARRIVED), None);
    }

    #[test]
    fn attributions_name_the_date_field_if_it_is_possible() {
        let berlin = ZoneCache::default().find("Europe/Berlin");
        let before = ARRIVED.seconds() - 40 * 86_400;
        let texts = |sent| {
            [for_attribution(sent, ARRIVED, &berlin), for_forwarding(sent, ARRIVED, &berlin)]
        };
        assert_eq!(
            texts(sent(before, -480)),
            ["24 Sep 2026, 16:05 (+0200)", "24 Sep 2026, 06:05 (-0800)"]
        );
        let arrival = ["3 Nov 2026, 15:05 (+0100)"; 2];
        assert_eq!(texts(None), arrival);
        for impossible in [0, 315_532_799, ARRIVED.seconds() + 86_401, u64::MAX] {
            assert_eq!(texts(sent(impossible, 720)), arrival, "{impossible}");
        }
    }
}
