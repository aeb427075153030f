//! Rewritten addresses, and bounces to them.

#![allow(clippy::expect_used, reason = "a test may fail")]

use std::format;

use machine::UnixTime;
use proptest::prelude::*;

use crate::srs::{DAYS, Restored, SrsKey};

const DAY: u64 = 24 * 3600;
const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);

fn ours() -> SrsKey {
    SrsKey::new(*b"sixteen of ours.")
}

fn local_part(path: &str) -> &str {
    path.rsplit_once('@').expect("there is a domain").0
}

fn after(seconds: u64) -> UnixTime {
    UnixTime::from_seconds(NOW.seconds() + seconds)
}

#[test]
fn rewritten_address_is_restored_only_with_our_key() {
    let rewritten = ours().rewrite("bob@there.test", "us.test", NOW).expect("the address fits");
    assert!(
        rewritten.starts_with("SRS0=") && rewritten.ends_with("=there.test=bob@us.test"),
        "{rewritten}"
    );
    assert_eq!(ours().restore(local_part(&rewritten), NOW), Restored::Of("bob@there.test".into()));
    assert_eq!(
        SrsKey::new(*b"sixteen of other").restore(local_part(&rewritten), NOW),
        Restored::Nobody
    );
    for changed in [
        rewritten.replace("=bob@", "=eve@"),
        rewritten.replace("there", "where"),
        "SRS0=a@us.test".into(),
    ] {
        assert_eq!(ours().restore(local_part(&changed), NOW), Restored::Nobody, "{changed}");
    }
    assert_eq!(ours().restore("bob", NOW), Restored::Plain);
    assert_eq!(ours().restore("SRS0", NOW), Restored::Plain);
}

#[test]
fn srs_ignores_case() {
    let rewritten =
        ours().rewrite("Bob.Builder@There.test", "us.test", NOW).expect("the address fits");
    for local_part in [local_part(&rewritten).to_lowercase(), local_part(&rewritten).to_uppercase()]
    {
        let Restored::Of(path) = ours().restore(&local_part, NOW) else { panic!("{local_part}") };
        assert_eq!(path.to_lowercase(), "bob.builder@there.test");
    }
}

#[test]
fn expired_or_future_srs_address_is_invalid() {
    let rewritten = ours().rewrite("bob@there.test", "us.test", NOW).expect("the address fits");
    let restored = |now| ours().restore(local_part(&rewritten), now);
    assert_eq!(restored(after(DAYS * DAY)), Restored::Of("bob@there.test".into()));
    assert_eq!(restored(after((DAYS + 1) * DAY)), Restored::Nobody);
    assert_eq!(restored(UnixTime::from_seconds(NOW.seconds() - 2 * DAY)), Restored::Nobody);
    // An address that another server rewrote before expires after the same time.
    let again = ours()
        .rewrite("SRS0=HHHHHH=AB=first.test=bob@there.test", "us.test", NOW)
        .expect("the address fits");
    let restored_again = |now| ours().restore(local_part(&again), now);
    let before = Restored::Of("SRS0=HHHHHH=AB=first.test=bob@there.test".into());
    assert_eq!([restored_again(NOW), restored_again(after(DAYS * DAY))], [before.clone(), before]);
    assert_eq!(restored_again(after((DAYS + 1) * DAY)), Restored::Nobody);
    let day = again.split('=').nth(1).and_then(|sealed| sealed.get(6..)).expect("a day");
    let younger = again.replacen(&format!("{day}="), "AA=", 1);
    assert_eq!(
        ours().restore(local_part(&younger), UnixTime::from_seconds(0)),
        Restored::Nobody,
        "the hash covers the day"
    );
    // Day numbers repeat after 1,024 days. Until then the address is not valid again.
    assert_eq!(restored(after(900 * DAY)), Restored::Nobody);
}

#[test]
fn srs1_keeps_only_the_first_forwarder() {
    let first = SrsKey::new(*b"that of another.")
        .rewrite("bob@there.test", "first.test", NOW)
        .expect("the address fits");
    let second = ours().rewrite(&first, "us.test", NOW).expect("the address fits");
    assert!(second.starts_with("SRS1=") && second.contains("=first.test=="), "{second}");
    assert_eq!(ours().restore(local_part(&second), NOW), Restored::Of(first.clone()));
    let third = SrsKey::new(*b"that of a third.")
        .rewrite(&second, "3rd.test", NOW)
        .expect("the address fits");
    assert_eq!(third.len(), second.len() + 1, "{third}");
    assert_eq!(
        SrsKey::new(*b"that of a third.").restore(local_part(&third), NOW),
        Restored::Of(first)
    );
    assert_eq!(
        ours().restore(&local_part(&second).replace("first", "other"), NOW),
        Restored::Nobody
    );
}

#[test]
fn oversized_local_part_is_not_rewritten() {
    let rewrite = |path: &str| ours().rewrite(path, "us.test", NOW);
    assert!(
        rewrite(&format!("{}@there.test", "b".repeat(38)))
            .is_some_and(|path| local_part(&path).len() == 64)
    );
    assert_eq!(rewrite(&format!("{}@there.test", "b".repeat(39))), None);
    assert_eq!(
        [rewrite("\"b b\"@there.test"), rewrite("bob@[10.0.0.1]"), rewrite("")],
        [None, None, None]
    );
}

proptest! {
    #[test]
    fn any_address_is_restored_or_invalid(name in "[a-zA-Z0-9=+-]{1,20}", text in "(?i)(SRS[01])?[=+-]?[ -~]{0,60}") {
        let path = format!("{name}@there.test");
        if let Some(rewritten) = ours().rewrite(&path, "us.test", NOW) {
            prop_assert_eq!(ours().restore(local_part(&rewritten), NOW), Restored::Of(path));
        }
        prop_assert!(!matches!(ours().restore(&text, NOW), Restored::Of(_)));
    }
}
