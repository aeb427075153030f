//! The disk forgets what a real one may forget, and nothing else.

use machine::{DiskOperation, DiskRequest, DiskToken, Machine, SECTOR_BYTES, Sector};

use crate::{Dice, MemoryDisk, SimulatedMachine};

fn carry_out(machine: &mut SimulatedMachine, operation: DiskOperation, sector: u64, buffer: Vec<u8>) -> Vec<u8> {
    let request = DiskRequest { token: DiskToken(7), operation, sector: Sector(sector), buffer: buffer.into() };
    assert!(machine.request(request).is_ok());
    machine.ring_doorbells();
    let completion = machine.completed().unwrap();
    assert_eq!((completion.token, completion.result), (DiskToken(7), Ok(())));
    completion.buffer.into_vec()
}

#[test]
fn a_power_cut_keeps_what_was_flushed_and_makes_a_lottery_of_the_rest() {
    let mut outcomes = [0; 3];
    for seed in 0..300 {
        let mut machine = SimulatedMachine::new(seed, MemoryDisk::blank(1 << 20));
        carry_out(&mut machine, DiskOperation::Write, 3, vec![1; 2 * SECTOR_BYTES]);
        carry_out(&mut machine, DiskOperation::Flush, 0, vec![]);
        carry_out(&mut machine, DiskOperation::Write, 4, vec![2; SECTOR_BYTES]);
        assert_eq!(carry_out(&mut machine, DiskOperation::Read, 4, vec![0; SECTOR_BYTES]), [2; SECTOR_BYTES]);
        let mut machine = SimulatedMachine::new(seed, machine.disk.power_cut(&mut Dice::new(seed)));
        assert_eq!(carry_out(&mut machine, DiskOperation::Read, 3, vec![0; SECTOR_BYTES]), [1; SECTOR_BYTES]);
        let survivor = carry_out(&mut machine, DiskOperation::Read, 4, vec![0; SECTOR_BYTES]);
        outcomes[[vec![1; SECTOR_BYTES], vec![2; SECTOR_BYTES]].iter().position(|is| *is == survivor).unwrap_or(2)] +=
            1;
    }
    assert!(outcomes.iter().all(|count| *count > 50), "{outcomes:?}");
}
