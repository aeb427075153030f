//! Tests that clients that wait for a resource continue when it is free. Clients that hold the
//! resource are evicted only if others need it.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use crate::CORES;

use super::room::{CONFIGURATION, Room, Talk};
use machine::Micros;
use server::{InUse, Sizes};
use simulated::{Cable, MemoryDisk};

/// An engine with few resources: 8 receive queues, 32 send queues, and 46 send blocks.
const SMALL: Sizes = Sizes {
    connections: 64,
    transactions: 4,
    blocks: 64,
    buffer_bytes: 1 << 20,
    index_bytes: 4 << 20,
};

/// A room with few resources, in which addresses may have any number of connections. `crowding.rs`
/// tests the limits per address.
fn small_room(seed: u64) -> Room {
    room_of(seed, SMALL)
}

fn room_of(seed: u64, sizes: Sizes) -> Room {
    let configuration = format!("{CONFIGURATION}unthrottled_from = [\"10.0.0.0/24\"]\n");
    let mut room = Room::configured(seed, MemoryDisk::blank(16 << 20), sizes, &configuration);
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

/// Adds a host with connections that buffer this many unread bytes.
fn host_with_buffers(room: &mut Room, bytes: usize) -> usize {
    let host = room.add_host();
    room.hosts[host].buffer_bytes = bytes;
    host
}

/// A room with this many messages in Ada's account.
fn room_with_messages(seed: u64, messages: usize) -> Room {
    let mut room = Room::new(seed);
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    room.smtp(&mut talk, "EHLO client.test");
    let message = "MAIL FROM:<>\r\nRCPT TO:<ada@barepost.test>\r\nBDAT 7 LAST\r\nHello\r\n";
    for _ in 0..messages / 500 {
        room.send(&talk, message.repeat(500).as_bytes());
        let mut accepted = 0;
        while accepted < 500 {
            accepted += usize::from(room.smtp_reply(&mut talk).starts_with("250 2.0.0"));
        }
    }
    room.close(&talk);
    room
}

#[test]
fn lists_of_thousands_of_messages_arrive_whole() {
    const MESSAGES: usize = 5_000;
    let mut room = room_with_messages(1, MESSAGES);
    let mut talk = room.log_in("ada@barepost.test");
    for command in ["LIST", "UIDL"] {
        assert!(room.pop3(&mut talk, command).starts_with("+OK"));
        let lines = room.pop3_lines(&mut talk);
        assert_eq!(lines.split(|byte| *byte == b'\n').count(), MESSAGES + 1);
    }
}

#[test]
fn every_second_of_thousands_of_messages_can_be_deleted() {
    const MESSAGES: usize = 6_500;
    let mut room = room_with_messages(11, MESSAGES);
    let mut talk = room.log_in("ada");
    for hundred in 0..MESSAGES / 100 {
        let numbers = (hundred * 100 + 1..=hundred * 100 + 100).step_by(2);
        let commands: String = numbers.map(|number| format!("DELE {number}\r\n")).collect();
        room.send(&talk, commands.as_bytes());
        for _ in 0..50 {
            assert!(room.line(&mut talk).starts_with("+OK"));
        }
    }
    assert!(room.pop3(&mut talk, "QUIT").starts_with("+OK"));
    let mut talk = room.log_in("ada");
    assert!(room.pop3(&mut talk, "STAT").starts_with(&format!("+OK {} ", MESSAGES / 2)));
}

#[test]
fn a_client_that_never_reads_holds_little_and_is_closed() {
    let mut room = Room::new(2);
    let host = host_with_buffers(&mut room, 512);
    let deaf = room.connect_from(host, 25);
    let commands = b"EHLO client.test\r\n".repeat(2_000);
    let mut sent_bytes = 0;
    let start = room.machine.now;
    room.until("a minute has passed", |room| {
        sent_bytes += room.send_some(&deaf, &commands[sent_bytes..]);
        room.machine.now.since(start) > Micros::from_secs(60)
    });
    assert!(room.engines.in_use().blocks < 80, "{:?}", room.engines.in_use());
    room.pass(Micros::from_secs(500));
    room.until_nothing_is_in_use();
    // The freed slot is used for the next client.
    let mut talk = room.connect(25);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
}

#[test]
fn connections_reset_for_lack_of_buffers_leave_nothing_behind() {
    let mut room = small_room(3);
    let host = host_with_buffers(&mut room, 64);
    let mut deaf: Vec<Talk> = (0..60).map(|_| room.connect_from(host, 25)).collect();
    let mut reset = 0;
    for _ in 0..20 {
        deaf.iter().for_each(|talk| room.try_to_send(talk, &b"EHLO client.test\r\n".repeat(3)));
        room.pass(Micros::from_millis(300));
        for talk in &mut deaf {
            if !room.hosts[host].is_open(talk.connection) {
                reset += 1;
                *talk = room.connect_from(host, 25);
            }
        }
    }
    assert!(reset > 0, "the pools were not used up");
    deaf.iter().for_each(|talk| room.abort(talk));
    room.pass(Micros::from_secs(1));
    room.until_nothing_is_in_use();
    let mut talk = room.connect(25);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
}

/// The time that a new client waits, in seconds, until it is greeted and its EHLO is answered.
fn patience_of_a_newcomer(room: &mut Room) -> u64 {
    let start = room.machine.now;
    loop {
        let mut talk = room.connect(25);
        let mut answered = None;
        room.until("the newcomer is answered or sent away", |room| {
            if let Some(line) = room.line_heard(&mut talk) {
                match &line[..4] {
                    "220 " => room.try_to_send(&talk, b"EHLO newcomer.test\r\n"),
                    "421 " => answered = Some(false),
                    _ => answered = Some(true),
                }
            }
            if !room.hosts[0].is_open(talk.connection) && room.hosts[0].is_over(talk.connection) {
                answered = Some(false);
            }
            answered.is_some()
        });
        if answered == Some(true) {
            room.abort(&talk);
            return room.machine.now.since(start).as_secs();
        }
        room.abort(&talk);
        room.pass(Micros::from_secs(1));
    }
}

#[test]
fn lines_without_an_end_do_not_take_all_receive_queues() {
    let mut room = small_room(4);
    let host = room.add_host();
    let talks: Vec<Talk> = (0..20 * CORES).map(|_| room.connect_from(host, 25)).collect();
    room.pass(Micros::from_secs(1));
    talks.iter().for_each(|talk| room.send(talk, b"NO"));
    room.pass(Micros::from_secs(1));
    assert_eq!(
        room.engines.in_use().receive_queues,
        8 * usize::from(CORES),
        "all receive queues are in use"
    );
    assert!(patience_of_a_newcomer(&mut room) < 30);
}

#[test]
fn slow_typists_do_not_block_clients_on_a_small_machine() {
    let mut room = room_of(4, Sizes { connections: 21, ..SMALL });
    let host = room.add_host();
    let talks: Vec<Talk> = (0..7).map(|_| room.connect_from(host, 25)).collect();
    room.pass(Micros::from_secs(1));
    talks.iter().for_each(|talk| room.send(talk, b"NO"));
    room.pass(Micros::from_secs(1));
    assert_eq!(room.engines.in_use().receive_queues, 7);
    assert!(patience_of_a_newcomer(&mut room) < 2);
}

/// The server takes the last receive queue from one session. A client that loses a segment twice
/// repeats it within three seconds. A client that does not read holds no receive queue, so it
/// stays.
#[test]
fn the_last_receive_queue_is_taken_from_one_session() {
    if CORES > 1 {
        // Each core has its own queues.
        return;
    }
    let mut room = room_of(8, Sizes { connections: 21, ..SMALL });
    let (reader, host) = (host_with_buffers(&mut room, 64), room.add_host());
    // The readers connect first and last. So the server checks a reader first, in either order of
    // the sessions.
    let mut readers: Vec<Talk> = (0..3).map(|_| room.connect_from(reader, 25)).collect();
    let talks: Vec<Talk> = (0..8).map(|_| room.connect_from(host, 25)).collect();
    readers.extend((0..3).map(|_| room.connect_from(reader, 25)));
    room.pass(Micros::from_secs(1));
    readers.iter().for_each(|reader| room.send(reader, &b"EHLO client.test\r\n".repeat(3)));
    room.pass(Micros::from_millis(500));
    talks.iter().for_each(|talk| room.send(talk, b"NO"));
    room.pass(Micros::from_millis(2_900));
    let InUse { sessions, receive_queues, send_queues, .. } = room.engines.in_use();
    assert_eq!((sessions, receive_queues, send_queues), (14, 8, 6));
    room.pass(Micros::from_secs(2));
    let InUse { sessions, receive_queues, send_queues, .. } = room.engines.in_use();
    assert_eq!((sessions, receive_queues, send_queues), (13, 7, 6));
}

#[test]
fn unread_replies_do_not_take_all_blocks() {
    let mut room = small_room(5);
    let host = host_with_buffers(&mut room, 64);
    let talks: Vec<Talk> = (0..40).map(|_| room.connect_from(host, 25)).collect();
    for _ in 0..10 {
        talks.iter().for_each(|talk| room.try_to_send(talk, &b"EHLO client.test\r\n".repeat(3)));
        room.pass(Micros::from_millis(100));
    }
    assert!(patience_of_a_newcomer(&mut room) < 30);
}

#[test]
fn vanished_clients_do_not_take_all_send_queues() {
    let mut room = small_room(6);
    let host = room.add_host();
    let talks: Vec<Talk> = (0..60).map(|_| room.connect_from(host, 25)).collect();
    room.until("all clients have a session", |room| room.engines.in_use().sessions == 60);
    // The clients were accepted one by one. Now all of them send at the same time.
    room.pass(Micros::from_secs(1));
    talks.iter().for_each(|talk| room.try_to_send(talk, b"EHLO client.test\r\n"));
    while room.engines.in_use().send_queues < 30 {
        room.step();
        if room.engines.in_use().send_queues > 20 {
            room.hosts[host].cable = Cable::Out;
            break;
        }
    }
    assert!(patience_of_a_newcomer(&mut room) < 30);
}

#[test]
fn stalled_transactions_do_not_block_others() {
    let mut room = small_room(7);
    let mut idlers = Vec::new();
    for _ in 0..SMALL.transactions {
        let mut talk = room.connect(25);
        room.smtp_reply(&mut talk);
        room.smtp(&mut talk, "EHLO idler.test");
        assert!(room.smtp(&mut talk, "MAIL FROM:<>").starts_with("250 "));
        idlers.push(talk);
    }
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    room.smtp(&mut talk, "EHLO client.test");
    assert!(room.smtp(&mut talk, "MAIL FROM:<>").starts_with("451 4.3.2"));
    room.pass(Micros::from_secs(15));
    assert!(room.smtp(&mut talk, "MAIL FROM:<>").starts_with("250 "));
    let replies = idlers.iter_mut().filter_map(|idler| room.line_heard(idler));
    assert!(replies.take(1).all(|line| line.starts_with("421 ")));
}

#[test]
fn idle_connections_are_evicted_for_new_clients() {
    let mut room = small_room(8);
    let host = room.add_host();
    let mut idlers: Vec<Talk> = Vec::new();
    let connections = SMALL.connections * usize::from(CORES);
    for _ in 0..connections {
        idlers.push(room.connect_from(host, 25));
        room.pass(Micros::from_millis(10));
    }
    let greetings: Vec<String> =
        idlers.iter_mut().filter_map(|talk| room.line_heard(talk)).collect();
    assert!(greetings.iter().any(|line| line.starts_with("421 ")), "{greetings:?}");
    assert!(
        greetings.iter().filter(|line| line.starts_with("220 ")).count() >= connections * 7 / 8
    );
    assert!(patience_of_a_newcomer(&mut room) < 30);
}

#[test]
fn an_idle_session_keeps_its_full_timeout_without_pressure() {
    let mut room = small_room(9);
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    room.pass(Micros::from_secs(290));
    assert!(room.smtp(&mut talk, "NOOP").starts_with("250 "));
    room.pass(Micros::from_secs(299));
    assert!(!room.has_hung_up(&mut talk));
    room.pass(Micros::from_secs(2));
    assert!(room.smtp_reply(&mut talk).starts_with("421 "));
    room.close(&talk);
    room.until_nothing_is_in_use();
}

#[test]
fn a_closed_session_ends_even_if_its_client_does_not() {
    let mut room = Room::new(10);
    let host = host_with_buffers(&mut room, 64);
    let talk = room.connect_from(host, 25);
    room.send(&talk, b"EHLO client.test\r\nQUIT\r\n");
    room.pass(Micros::from_secs(100));
    assert_eq!(
        room.engines.in_use().sessions,
        1,
        "the connection waits for the client to read the last reply"
    );
    room.pass(Micros::from_secs(100));
    assert_eq!(room.engines.in_use(), InUse::default());
}

/// The sizes of an engine with buffers for four messages of more than a page.
const FEW_BUFFERS: Sizes = Sizes {
    connections: 64,
    transactions: 16,
    blocks: 512,
    buffer_bytes: 256 << 10,
    index_bytes: 4 << 20,
};

/// A room in which four stalled messages hold all large buffers.
fn room_with_stalled_messages(seed: u64) -> (Room, Vec<Talk>) {
    let mut room = Room::with_sizes(seed, MemoryDisk::blank(16 << 20), FEW_BUFFERS);
    let idlers: Vec<Talk> = (0..4).map(|_| room.begin_message("ada@barepost.test")).collect();
    idlers.iter().for_each(|idler| room.send(idler, &b"A line of its text\r\n".repeat(300)));
    room.pass(Micros::from_secs(1));
    (room, idlers)
}

#[test]
fn stalled_messages_do_not_block_larger_ones() {
    let (mut room, mut idlers) = room_with_stalled_messages(12);
    let before = room.machine.now;
    assert!(
        room.deliver("grace@barepost.test", &b"A line of its text\r\n".repeat(5_000))
            .starts_with("250 ")
    );
    assert!(room.machine.now.since(before) < Micros::from_secs(30));
    let replies = idlers.iter_mut().filter_map(|idler| room.line_heard(idler));
    assert!(replies.take(1).all(|line| line.starts_with("421 ")));
}

#[test]
fn stalled_messages_do_not_block_readers_of_large_ones() {
    let message = b"A line of its text\r\n".repeat(5_000);
    let mut room = Room::with_sizes(13, MemoryDisk::blank(16 << 20), FEW_BUFFERS);
    assert!(room.deliver("grace@barepost.test", &message).starts_with("250 "));
    let idlers: Vec<Talk> = (0..4).map(|_| room.begin_message("ada@barepost.test")).collect();
    idlers.iter().for_each(|idler| room.send(idler, &b"A line of its text\r\n".repeat(300)));
    let mut talk = room.log_in("grace");
    let before = room.machine.now;
    assert_eq!(room.retrieve(&mut talk, 1), message);
    assert!(room.machine.now.since(before) < Micros::from_secs(30));
}

#[test]
fn a_client_continues_as_soon_as_its_buffer_is_free() {
    let (mut room, _idlers) = room_with_stalled_messages(14);
    let host = room.add_host();
    let mut talk = room.begin_message_from(host, "grace@barepost.test");
    room.send(&talk, &b"A line of its text\r\n".repeat(300));
    room.send(&talk, b".\r\n");
    room.pass(Micros::from_secs(1));
    // The evicted clients do not acknowledge their last reply, so only the free buffer can cause a
    // turn.
    room.hosts[0].cable = Cable::Out;
    let mut before = room.machine.now;
    room.until("a client was evicted", |room| {
        let is_gone = room.engines.in_use().deliveries < 5;
        before = if is_gone { before } else { room.machine.now };
        is_gone
    });
    assert!(room.smtp_reply(&mut talk).starts_with("250 "));
    assert!(
        room.machine.now.since(before) < Micros::from_millis(50),
        "{:?}",
        room.machine.now.since(before)
    );
}

#[test]
fn more_readers_than_concurrent_reads_all_get_their_messages() {
    let one_read = Sizes { transactions: 1, ..FEW_BUFFERS };
    let mut room = Room::with_sizes(15, MemoryDisk::blank(16 << 20), one_read);
    let message = b"A line of its text\r\n".repeat(5_000);
    for user in ["ada", "grace"] {
        assert!(room.deliver(&format!("{user}@barepost.test"), &message).starts_with("250 "));
    }
    let mut talks = ["ada", "grace"].map(|user| room.log_in(user));
    talks.iter().for_each(|talk| room.send(talk, b"RETR 1\r\n"));
    for talk in &mut talks {
        assert!(room.line(talk).starts_with("+OK"));
        assert_eq!(super::room::without_trace(room.pop3_lines(talk)), message);
    }
}
