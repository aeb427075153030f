//! Selective acknowledgments: our reports of gaps (RFC 2018) and of duplicates (RFC 2883).

use super::Conversation;

#[test]
fn sack_is_proposed_and_sent_only_to_peers_that_permit_it() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0 sackok 1").peer("S. 0:0 ack 1 mss 1000 sackok 1").we(". 1:1 ack 1");
    talk.peer(". 11:21 ack 1").we(". 1:1 ack 1 11-21");
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0 sackok 1").peer("S. 0:0 ack 1 mss 1000").we(". 1:1 ack 1");
    talk.peer(". 11:21 ack 1").we(". 1:1 ack 1 none 1");
}

#[test]
fn ranges_beyond_gaps_are_reported_newest_first() {
    let mut talk = Conversation::selective();
    talk.peer(". 101:201 ack 1").we(". 1:1 ack 1 101-201");
    talk.peer(". 301:401 ack 1").we(". 1:1 ack 1 301-401 101-201");
    talk.peer(". 501:601 ack 1").we(". 1:1 ack 1 501-601 301-401 101-201");
    talk.peer(". 701:801 ack 1").we(". 1:1 ack 1 701-801 501-601 301-401 101-201");
    talk.peer(". 901:951 ack 1").we(". 1:1 ack 1 901-951 701-801 501-601 301-401");
    talk.peer(". 201:251 ack 1").we(". 1:1 ack 1 101-251 901-951 701-801 501-601");
    talk.peer(". 251:301 ack 1").we(". 1:1 ack 1 101-401 901-951 701-801 501-601");
    talk.peer(". 801:901 ack 1").we(". 1:1 ack 1 701-951 101-401 501-601");
    talk.peer(". 1:101 ack 1").we(". 1:1 ack 401 701-951 501-601");
    talk.peer(". 401:501 ack 1")
        .we(". 1:1 ack 601 701-951")
        .peer(". 601:701 ack 1")
        .we(". 1:1 ack 951 none 1");
    talk.silence().lent_nothing();
    assert_eq!(talk.given, 950);
}

#[test]
fn a_duplicate_is_reported_first_and_once() {
    let mut talk = Conversation::selective();
    talk.peer(". 1:101 ack 1").wait(40).we(". 1:1 ack 101 none 1");
    talk.peer(". 1:101 ack 1").we(". 1:1 ack 101 1-101");
    talk.peer(". 51:151 ack 1").wait(40).we(". 1:1 ack 151 51-101");
    talk.peer(". 301:401 ack 1").we(". 1:1 ack 151 301-401");
    talk.peer(". 351:381 ack 1").we(". 1:1 ack 151 351-381 301-401");
    talk.peer(". 351:501 ack 1").we(". 1:1 ack 151 351-401 301-501");
    talk.peer(". 601:701 ack 1").we(". 1:1 ack 151 601-701 301-501");
}

#[test]
fn data_segments_keep_their_size_when_sack_is_pending() {
    let mut talk = Conversation::selective();
    talk.peer_quietly(". 101:201 ack 1");
    talk.write(2000)
        .we(". 1:1 ack 1 101-201")
        .we(". 1:1001 ack 1 none 1")
        .we("P. 1001:2001 ack 1 none 1")
        .silence();
}

/// The path has a round trip of 20 ms, and its narrowest link takes 2 ms for each segment.
#[test]
fn selective_acks_count_in_the_train_that_ends_slow_start() {
    let in_order = ["1001", "2001", "3001", "4001", "5001", "6001", "7001"];
    let overtaken = ["1001", "2001", "2001 3001-4001", "2001 3001-5001", "5001", "6001", "7001"];
    for reported in [in_order, overtaken] {
        let mut talk = Conversation::selective();
        talk.write(200_000).we_whatever();
        talk.wait(20);
        for (place, reported) in reported.iter().enumerate() {
            talk.peer(&alloc::format!(". 1:1 ack {reported}")).we_whatever();
            assert_eq!(
                talk.tcb.congestion().is_in_first_slow_start(),
                place < 6,
                "an ack train of half a round trip ends slow start"
            );
            talk.wait(2);
        }
    }
}

#[test]
fn reordered_segments_do_not_lengthen_an_ack_train() {
    let mut talk = Conversation::selective();
    talk.write(200_000).we_whatever();
    talk.wait(29);
    // Half a round trip is 14.5 ms. In-order data arrives for 13 ms; the reordered segment arrives
    // after 15 ms.
    for (reported, pause) in [
        ("1001", 1),
        ("1001 2001-3001", 1),
        ("3001", 1),
        ("3001 4001-5001", 2),
        ("3001 4001-6001", 2),
        ("3001 4001-7001", 2),
        ("3001 4001-8001", 2),
        ("3001 4001-9001", 2),
        ("3001 4001-10001", 2),
        ("10001", 2),
    ] {
        talk.peer(&alloc::format!(". 1:1 ack {reported}")).we_whatever();
        assert!(talk.tcb.congestion().is_in_first_slow_start(), "{reported}");
        talk.wait(pause);
    }
}
