//! Long lives of a machine among random clients: senders and readers that come, speak in pieces, leave at any moment or
//! fall silent, a disk that answers late and in any order, and power cuts. A ledger of what clients heard judges what the
//! next ones find.

#![allow(clippy::indexing_slicing, reason = "a test may fail")]

mod life;
mod room;

use life::ledger::Ledger;
use life::reader::Reader;
use life::sender::Sender;
use machine::Micros;
use room::{Room, usual_sizes};
use simulated::{Cable, Dice, MemoryDisk, Mood};

/// Moments between two power cuts.
const MOMENTS_PER_LIFE: u64 = 400;
const LIVES: u64 = 4;
const CLIENTS_MAX: usize = 10;
/// The host whose cable is pulled now and then.
const UNLUCKY_HOST: usize = 1;

/// Somebody who speaks with the machine.
enum Client {
    Sender(Sender),
    Reader(Reader),
}

/// Whether a client goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    GoesOn,
    IsDone,
}

fn live(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut ledger = Ledger::default();
    let disk = MemoryDisk::blank((2 << 20) + dice.below(14 << 20));
    let mut room = Room::with_sizes(seed, disk, usual_sizes());
    for life in 0..LIVES {
        room.add_host();
        room.machine.disk.mood = Mood::Waits;
        let mut clients: Vec<Client> = Vec::new();
        for _ in 0..MOMENTS_PER_LIFE {
            moment(&mut room, &mut clients, &mut ledger, &mut dice);
        }
        room = room.power_cut(seed * 100 + life);
        ledger.audit(&mut room);
    }
    let (present, deleted) = ledger.present_and_deleted();
    assert!(present > 20 && deleted > 20, "a dull life: {present} letters are there, {deleted} were deleted");
}

fn moment(room: &mut Room, clients: &mut Vec<Client>, ledger: &mut Ledger, dice: &mut Dice) {
    if clients.len() < CLIENTS_MAX && dice.one_in(4) {
        let host = dice.below(2) as usize;
        clients.push(match dice.below(5) {
            0 | 1 => Client::Reader(Reader::connect(room, host, dice)),
            _ => Client::Sender(Sender::connect(room, host, ledger, dice)),
        });
    }
    if !clients.is_empty() && dice.one_in(60) {
        let leaver = clients.swap_remove(dice.below(clients.len() as u64) as usize);
        room.abort(leaver.talk());
    }
    if dice.one_in(100) {
        room.hosts[UNLUCKY_HOST].cable = Cable::Out;
        clients.retain(|client| client.talk().host != UNLUCKY_HOST);
    } else if dice.one_in(10) {
        room.hosts[UNLUCKY_HOST].cable = Cable::In;
    }
    clients.retain_mut(|client| {
        let progress = match client {
            Client::Sender(sender) => sender.go_on(room, ledger, dice),
            Client::Reader(reader) => reader.go_on(room, ledger, dice),
        };
        progress == Progress::GoesOn
    });
    for _ in 0..dice.below(12) {
        room.machine.disk.carry_out_any(dice);
    }
    room.pass(Micros(200 + dice.below(3_000)));
}

impl Client {
    fn talk(&self) -> &room::Talk {
        match self {
            Client::Sender(sender) => &sender.line.talk,
            Client::Reader(reader) => &reader.line.talk,
        }
    }
}

/// `SEED` and `SEEDS` in the environment choose the first one, and how many.
#[test]
fn acknowledged_mail_outlives_everything_and_deleted_mail_stays_deleted() {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let first = number("SEED").unwrap_or(1);
    for seed in first..first + number("SEEDS").unwrap_or(2) {
        eprintln!("seed {seed}");
        live(seed);
    }
}
