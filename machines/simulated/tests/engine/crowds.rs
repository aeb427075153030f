//! Tests with hundreds of clients at once: the server serves all, and stores each message once.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use super::room::{CONFIGURATION, Room, Talk, usual_sizes};
use machine::Micros;
use server::Sizes;
use simulated::{Cable, MemoryDisk, Mood};

const USERS: usize = 40;

/// A room with many users, and hosts for crowds of clients.
fn crowded_room(seed: u64, hosts: usize, sizes: Sizes) -> Room {
    let hash = CONFIGURATION.split('"').find(|text| text.starts_with("$argon2id")).expect("a hash");
    let user = |number| {
        format!("[[user]]\naddress = \"user{number}@barepost.test\"\npassword_hash = \"{hash}\"\n")
    };
    let users: String = (0..USERS).map(user).collect();
    // All clients have a few addresses, so the limits per address are off.
    let access = "unthrottled_from = [\"10.0.0.0/24\"]\n";
    let configuration = format!("{CONFIGURATION}{access}{users}");
    let mut room = Room::configured(seed, MemoryDisk::blank(64 << 20), sizes, &configuration);
    room.until("the engine serves", |room| room.console_says("serving"));
    for _ in 0..hosts {
        let host = room.add_host();
        room.hosts[host].buffer_bytes = 4096;
    }
    room
}

/// A client that sends all its commands as fast as possible.
struct Chatterer {
    talk: Talk,
    unsaid: Vec<u8>,
    heard: Vec<u8>,
    ended: bool,
}

impl Chatterer {
    fn connect(room: &mut Room, host: usize, port: u16, commands: Vec<u8>) -> Chatterer {
        Chatterer {
            talk: room.connect_from(host, port),
            unsaid: commands,
            heard: Vec::new(),
            ended: false,
        }
    }

    fn go_on(&mut self, room: &mut Room) {
        if self.ended {
            return;
        }
        let sent = room.send_some(&self.talk, &self.unsaid);
        self.unsaid.drain(..sent);
        self.ended = room.has_hung_up(&mut self.talk)
            && room.hosts[self.talk.host].has_answered(self.talk.connection);
        self.heard.append(&mut self.talk.heard);
        if self.ended {
            room.close(&self.talk);
        }
    }

    fn count(&self, words: &str) -> usize {
        String::from_utf8_lossy(&self.heard).matches(words).count()
    }
}

fn until_all_have_ended(room: &mut Room, crowd: &mut [Chatterer]) {
    room.until("all connections have ended", |room| {
        crowd.iter_mut().for_each(|one| one.go_on(room));
        crowd.iter().all(|one| one.ended)
    });
    room.until_nothing_is_in_use();
}

fn messages(count: usize, user: usize, body: &[u8]) -> Vec<u8> {
    let mut commands = b"EHLO client.test\r\n".to_vec();
    for number in 0..count {
        let user = (user + number) % USERS;
        commands.extend_from_slice(b"MAIL FROM:<sender@elsewhere.test>\r\n");
        commands.extend_from_slice(format!("RCPT TO:<user{user}@barepost.test>\r\n").as_bytes());
        commands.extend_from_slice(format!("BDAT {} LAST\r\n", body.len()).as_bytes());
        commands.extend_from_slice(body);
    }
    commands.extend_from_slice(b"QUIT\r\n");
    commands
}

#[test]
fn hundreds_of_clients_send_and_read_at_once() {
    const SENDERS: usize = 300;
    const MESSAGES: usize = 4;
    let mut room = crowded_room(1, 4, usual_sizes());
    let body = b"A line of its text\r\n".repeat(40);
    let mut crowd: Vec<Chatterer> = Vec::new();
    for number in 0..SENDERS {
        crowd.push(Chatterer::connect(
            &mut room,
            1 + number % 4,
            25,
            messages(MESSAGES, number, &body),
        ));
    }
    for number in 0..USERS {
        let commands =
            format!("USER user{number}\r\nPASS lovelace\r\nSTAT\r\nUIDL\r\nLIST\r\nQUIT\r\n")
                .into_bytes();
        crowd.push(Chatterer::connect(&mut room, 1 + number % 4, 110, commands));
    }
    until_all_have_ended(&mut room, &mut crowd);
    let accepted: usize = crowd.iter().map(|one| one.count("250 2.0.0")).sum();
    let busy: usize = crowd.iter().map(|one| one.count("451 4.3.2")).sum();
    assert_eq!(accepted + busy, SENDERS * MESSAGES, "each message has one reply");
    assert!(accepted > SENDERS * MESSAGES / 2);

    let stat =
        |number| format!("USER user{number}\r\nPASS lovelace\r\nSTAT\r\nQUIT\r\n").into_bytes();
    let mut readers: Vec<Chatterer> = (0..USERS)
        .map(|number| Chatterer::connect(&mut room, 1 + number % 4, 110, stat(number)))
        .collect();
    until_all_have_ended(&mut room, &mut readers);
    let mut stored = 0;
    for reader in readers {
        let heard = String::from_utf8_lossy(&reader.heard).to_string();
        let status = heard.lines().nth(3).expect("STAT is answered");
        stored += status
            .split(' ')
            .nth(1)
            .and_then(|count| count.parse::<usize>().ok())
            .expect("a count");
    }
    assert_eq!(stored, accepted);
}

#[test]
fn large_messages_beyond_the_buffers_are_taken_in_turn() {
    let sizes = Sizes { buffer_bytes: 256 << 10, ..usual_sizes() };
    let mut room = crowded_room(2, 3, sizes);
    room.machine.disk.mood = Mood::Waits;
    let body = b"A line of its text that is long in all\r\n".repeat(2_500);
    let mut crowd: Vec<Chatterer> = (0..60)
        .map(|number| Chatterer::connect(&mut room, 1 + number % 3, 25, messages(1, number, &body)))
        .collect();
    for _ in 0..40_000 {
        room.machine.disk.carry_out_next();
        crowd.iter_mut().for_each(|one| one.go_on(&mut room));
        room.pass(Micros(500));
        if crowd.iter().all(|one| one.ended) {
            break;
        }
    }
    let accepted: usize = crowd.iter().map(|one| one.count("250 2.0.0")).sum();
    assert_eq!(accepted, 60);
    room.machine.disk.mood = Mood::Works;
    room.until_nothing_is_in_use();
}

/// Each delivery holds buffers of one core while it waits for buffers of another core. The cores
/// take buffers in no common order, so two deliveries could wait for each other.
#[test]
fn large_messages_to_all_cores_do_not_deadlock() {
    let sizes = Sizes { buffer_bytes: 256 << 10, ..usual_sizes() };
    for seed in 4..7 {
        let mut room = crowded_room(seed, 3, sizes);
        let body = b"A line of its text that is long in all\r\n".repeat(2_500);
        let mut crowd: Vec<Chatterer> = (0..40)
            .map(|number| {
                let mut commands =
                    b"EHLO client.test\r\nMAIL FROM:<sender@elsewhere.test>\r\n".to_vec();
                for user in 0..6 {
                    let user = (number + 7 * user) % USERS;
                    commands.extend_from_slice(
                        format!("RCPT TO:<user{user}@barepost.test>\r\n").as_bytes(),
                    );
                }
                commands.extend_from_slice(format!("BDAT {} LAST\r\n", body.len()).as_bytes());
                commands.extend_from_slice(&body);
                commands.extend_from_slice(b"QUIT\r\n");
                Chatterer::connect(&mut room, 1 + number % 3, 25, commands)
            })
            .collect();
        for _ in 0..200_000 {
            crowd.iter_mut().for_each(|one| one.go_on(&mut room));
            room.pass(Micros(500));
            if crowd.iter().all(|one| one.ended) {
                break;
            }
        }
        assert!(crowd.iter().all(|one| one.ended));
        let accepted: usize = crowd.iter().map(|one| one.count("250 2.0.0")).sum();
        assert!(accepted > 0);
        room.until_nothing_is_in_use();
        assert!(room.deliver("user1@barepost.test", &body).starts_with("250"));
    }
}

/// With few concurrent deliveries, messages for accounts of all cores wait for each other. Their
/// clients disconnect before the server gives up one of the messages.
#[test]
fn abandoned_messages_to_all_cores_block_no_other() {
    let sizes = Sizes { transactions: 1, ..usual_sizes() };
    for seed in 0..30 {
        let mut room = crowded_room(100 + seed, 3, sizes);
        let crowd: Vec<Talk> = (0..12)
            .map(|number| {
                let talk = room.connect_from(1 + number % 3, 25);
                let mut commands =
                    "EHLO client.test\r\nMAIL FROM:<sender@elsewhere.test>\r\n".to_string();
                for user in 0..6 {
                    let user = (number + 7 * user) % USERS;
                    commands += &format!("RCPT TO:<user{user}@barepost.test>\r\n");
                }
                commands += "BDAT 5 LAST\r\nHello";
                room.send(&talk, commands.as_bytes());
                talk
            })
            .collect();
        room.pass(Micros::from_millis(20 + 10 * seed));
        crowd.iter().for_each(|talk| room.abort(talk));
        room.until_nothing_is_in_use();
        assert!(room.deliver("user1@barepost.test", b"Hello\r\n").starts_with("250"));
    }
}

#[test]
fn slow_readers_of_large_messages_block_no_sender() {
    let sizes = Sizes { buffer_bytes: 256 << 10, ..usual_sizes() };
    const READERS: usize = 10;
    let mut room = crowded_room(3, 3, sizes);
    let body = b"A line of its text that is long in all\r\n".repeat(20_000);
    let mut senders: Vec<Chatterer> = (0..READERS)
        .map(|number| Chatterer::connect(&mut room, 1, 25, messages(1, number, &body)))
        .collect();
    until_all_have_ended(&mut room, &mut senders);
    let mut readers = Vec::new();
    for number in 0..READERS {
        let talk = room.connect_from(2, 110);
        room.send(&talk, format!("USER user{number}\r\nPASS lovelace\r\nRETR 1\r\n").as_bytes());
        readers.push(talk);
    }
    room.pass(Micros::from_secs(5));
    assert_eq!(room.engines.in_use().reads, 0, "a client that does not read holds no buffer");
    assert!(room.deliver("ada@barepost.test", &body).starts_with("250"));
    let mut last = readers.pop().expect("a reader");
    room.until("a reader has the whole message", |room| {
        room.listen(&mut last);
        last.heard.ends_with(b"\r\n.\r\n")
    });
    assert!(last.heard.len() > body.len());
}

#[test]
fn a_client_is_greeted_as_soon_as_a_send_queue_is_free() {
    // The core has half as many send queues as connections.
    let sizes = Sizes { connections: 64, transactions: 16, blocks: 512, ..usual_sizes() };
    let mut room = crowded_room(7, 5, sizes);
    let greet = |room: &mut Room, host, count| -> Vec<Chatterer> {
        (0..count)
            .map(|number| Chatterer::connect(room, host, [25, 110][number % 2], Vec::new()))
            .collect()
    };
    // These clients connect, and do not acknowledge their greetings.
    let mut crowd = Vec::new();
    for host in 0..4 {
        crowd.extend(greet(&mut room, host, 8));
        room.until("all clients are connected", |room| {
            room.engines.in_use().connections == crowd.len()
        });
        room.hosts[host].cable = Cable::Out;
    }
    assert_eq!(room.engines.in_use().send_queues, 32, "all send queues are in use");
    crowd.extend(greet(&mut room, 4, 10));
    room.pass(Micros::from_millis(500));
    (0..4).for_each(|host| room.hosts[host].cable = Cable::In);
    room.pass(Micros::from_secs(20));
    for one in &mut crowd {
        one.go_on(&mut room);
        assert!(
            one.count("220 ") + one.count("+OK ") == 1 && !one.ended,
            "one of them was not greeted"
        );
        room.close(&one.talk);
    }
    room.until_nothing_is_in_use();
}
