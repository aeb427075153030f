//! Tests of the simulated disk: a power cut may lose only the writes that a real disk may lose.

use chance::Dice;
use machine::{DiskOperation, DiskRequest, DiskToken, Machine, SECTOR_BYTES, Sector};

use crate::disk::Blemish;
use crate::{MemoryDisk, Mood, SimulatedMachine};

fn carry_out(
    machine: &mut SimulatedMachine,
    operation: DiskOperation,
    sector: u64,
    buffer: Vec<u8>,
) -> Vec<u8> {
    let request = DiskRequest {
        token: DiskToken(7),
        operation,
        sector: Sector(sector),
        buffer: buffer.into(),
    };
    assert!(machine.request(request).is_ok());
    machine.ring_doorbells();
    let completion = machine.completed().unwrap();
    assert_eq!((completion.token, completion.result), (DiskToken(7), Ok(())));
    completion.buffer.into_vec()
}

#[test]
fn a_power_cut_keeps_flushed_sectors_and_randomizes_the_rest() {
    let mut outcomes = [0; 3];
    for seed in 0..300 {
        let mut machine = SimulatedMachine::new(seed, MemoryDisk::blank(1 << 20));
        carry_out(&mut machine, DiskOperation::Write, 3, vec![1; 2 * SECTOR_BYTES]);
        carry_out(&mut machine, DiskOperation::Flush, 0, vec![]);
        carry_out(&mut machine, DiskOperation::Write, 4, vec![2; SECTOR_BYTES]);
        assert_eq!(
            carry_out(&mut machine, DiskOperation::Read, 4, vec![0; SECTOR_BYTES]),
            [2; SECTOR_BYTES]
        );
        let mut machine = SimulatedMachine::new(seed, machine.disk.power_cut(&mut Dice::new(seed)));
        assert_eq!(
            carry_out(&mut machine, DiskOperation::Read, 3, vec![0; SECTOR_BYTES]),
            [1; SECTOR_BYTES]
        );
        let survivor = carry_out(&mut machine, DiskOperation::Read, 4, vec![0; SECTOR_BYTES]);
        outcomes[[vec![1; SECTOR_BYTES], vec![2; SECTOR_BYTES]]
            .iter()
            .position(|is| *is == survivor)
            .unwrap_or(2)] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 50), "{outcomes:?}");
}

#[test]
fn a_flush_covers_only_writes_completed_before_it() {
    let request = |machine: &mut SimulatedMachine, operation, sector, byte: u8| {
        let buffer =
            if operation == DiskOperation::Flush { vec![] } else { vec![byte; SECTOR_BYTES] };
        let request = DiskRequest {
            token: DiskToken(7),
            operation,
            sector: Sector(sector),
            buffer: buffer.into(),
        };
        assert!(machine.request(request).is_ok());
    };
    let mut kept = [0; 2];
    for seed in 0..100 {
        let mut machine = SimulatedMachine::new(seed, MemoryDisk::blank(1 << 20));
        machine.disk.mood = Mood::Waits;
        request(&mut machine, DiskOperation::Write, 1, 1);
        machine.disk.carry_out_next();
        request(&mut machine, DiskOperation::Write, 2, 2);
        request(&mut machine, DiskOperation::Flush, 0, 0);
        machine.disk.carry_out_next();
        machine.disk.carry_out_next();
        let mut machine = SimulatedMachine::new(seed, machine.disk.power_cut(&mut Dice::new(seed)));
        for (sector, kept) in [1, 2].into_iter().zip(&mut kept) {
            let read = carry_out(&mut machine, DiskOperation::Read, sector, vec![0; SECTOR_BYTES]);
            *kept += usize::from(read == vec![sector as u8; SECTOR_BYTES]);
        }
    }
    assert!(kept[0] == 100 && kept[1] < 80, "{kept:?}");
}

#[test]
fn a_sector_fault_lasts_until_the_sector_is_rewritten() {
    let mut machine = SimulatedMachine::new(1, MemoryDisk::blank(1 << 20));
    carry_out(&mut machine, DiskOperation::Write, 3, vec![1; SECTOR_BYTES]);
    carry_out(&mut machine, DiskOperation::Write, 3, vec![2; SECTOR_BYTES]);
    let before = machine.disk.held_before(3);
    machine.disk.blemish(3, Blemish::ReadsAs(before));
    assert_eq!(
        carry_out(&mut machine, DiskOperation::Read, 3, vec![0; SECTOR_BYTES]),
        [1; SECTOR_BYTES]
    );
    assert_eq!(
        *machine.disk.held(3),
        [2; SECTOR_BYTES],
        "the disk still knows the written content"
    );
    carry_out(&mut machine, DiskOperation::Write, 3, vec![4; SECTOR_BYTES]);
    assert_eq!(
        carry_out(&mut machine, DiskOperation::Read, 3, vec![0; SECTOR_BYTES]),
        [4; SECTOR_BYTES]
    );

    machine.disk.blemish(3, Blemish::Unreadable);
    let read = DiskRequest {
        token: DiskToken(1),
        operation: DiskOperation::Read,
        sector: Sector(2),
        buffer: vec![0; 2 * SECTOR_BYTES].into(),
    };
    assert!(machine.request(read).is_ok());
    machine.ring_doorbells();
    assert_eq!(machine.completed().unwrap().result, Err(machine::DiskError::Failed));
    machine.disk.heal();
    assert_eq!(
        carry_out(&mut machine, DiskOperation::Read, 3, vec![0; SECTOR_BYTES]),
        [4; SECTOR_BYTES]
    );
}
