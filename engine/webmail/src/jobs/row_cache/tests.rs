//! Tests of the row cache.

use machine::UnixTime;
use store::{Flags, Guid, INBOX, Modseq, TRASH, Uid};

use crate::zone::Zone;
use crate::{Escaped, ListRow, RowTarget};

use super::*;

const NOON: UnixTime = UnixTime::from_seconds(43_200);

fn info(guid: u128) -> MessageInfo {
    let (modseq, flags) = (Modseq(1), Flags::default());
    MessageInfo {
        uid: Uid(1),
        octets: 9,
        head: 0,
        internal_date: NOON,
        modseq,
        flags,
        keywords: 0,
        guid: Guid(guid),
        conversation: 7,
    }
}

fn facts(info: MessageInfo) -> RowFacts {
    let clock = LocalClock { now: NOON, zone: Zone::UTC };
    RowFacts::of(AccountId::from_bits(1), INBOX, info, RowTotals::alone(INBOX, &info), &clock)
}

fn row(snippet: &str) -> RenderedRow {
    let [key, href, people, subject, date, moment] = [Escaped(""); 6];
    let snippet = Escaped(snippet);
    let (messages, [is_unread, is_starred, is_answered, has_attachment]) = (1, [false; 4]);
    let row = ListRow {
        key,
        href,
        target: RowTarget::Message,
        people,
        messages,
        subject,
        snippet,
        date,
        moment,
        is_unread,
        is_starred,
        is_answered,
        has_attachment,
    };
    row.written()
}

#[test]
fn cached_row_is_found_only_by_equal_facts() {
    let own = facts(info(1));
    let mut rows = RowCache::new();
    rows.keep(own, &row("Engine"));
    assert!(rows.find(&own).is_some());
    let seen = MessageInfo { flags: Flags::SEEN, ..info(1) };
    let others = [
        RowFacts { account: AccountId::from_bits(2), ..own },
        RowFacts { mailbox: TRASH, ..own },
        RowFacts { zone: "Europe/Paris", ..own },
        RowFacts { info: seen, ..own },
        RowFacts { info: MessageInfo { uid: Uid(2), ..info(1) }, ..own },
        RowFacts { totals: RowTotals::alone(INBOX, &seen), ..own },
        RowFacts { today: own.today + 1, ..own },
    ];
    assert!(others.iter().all(|other| rows.find(other).is_none()));
}

#[test]
fn row_cache_is_bounded_and_skips_long_rows() {
    let mut rows = RowCache::new();
    let all: Vec<RowFacts> =
        (0..3 * CACHED_ROWS_MAX as u128).map(|guid| facts(info(guid))).collect();
    let short = row("Engine");
    all.iter().for_each(|facts| rows.keep(*facts, &short));
    let kept = all.iter().filter(|facts| rows.find(facts).is_some()).count();
    assert!((CACHED_ROWS_MAX / 2..=CACHED_ROWS_MAX).contains(&kept), "{kept}");
    let newest = all.iter().rev().take(50);
    assert_eq!(
        newest.filter(|facts| rows.find(facts).is_some()).count(),
        50,
        "rows of consecutive messages do not replace each other"
    );

    let long = facts(info(u128::from(u32::MAX)));
    rows.keep(long, &row(&"x".repeat(ROW_BYTES_MAX)));
    assert!(rows.find(&long).is_none());
}
