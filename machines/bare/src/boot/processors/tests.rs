//! Tests with tables as firmware writes them, in simulated memory.

use super::*;
use proptest::prelude::*;

/// The lowest 2 MiB of memory.
struct Memory(Vec<u8>);

impl Memory {
    fn new() -> Memory {
        Memory(vec![0; 2 << 20])
    }

    fn put(&mut self, address: usize, bytes: &[u8]) {
        self.0[address..address + bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, range: Range<u64>) -> &[u8] {
        let end = (range.end as usize).min(self.0.len());
        self.0.get(range.start as usize..end).unwrap_or_default()
    }

    fn others(&self, loader_address: u64) -> Vec<u32> {
        let place = Place::find(loader_address, |range| self.read(range));
        place.processors(|range| self.read(range)).others(0).collect()
    }
}

fn summed(mut bytes: Vec<u8>, sum_at: usize) -> Vec<u8> {
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes[sum_at] = bytes[sum_at].wrapping_sub(sum);
    bytes
}

fn acpi_table(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut table = vec![0; HEADER_BYTES];
    table[..4].copy_from_slice(name);
    table[4..8].copy_from_slice(&((HEADER_BYTES + body.len()) as u32).to_le_bytes());
    table.extend(body);
    summed(table, 9)
}

fn anchor(revision: u8, rsdt: u32, xsdt: u64) -> Vec<u8> {
    let mut anchor = b"RSD PTR \0OEMID.".to_vec();
    anchor[14] = 0;
    anchor.push(revision);
    anchor.extend(rsdt.to_le_bytes());
    let mut anchor = summed(anchor, 8);
    anchor.extend(36_u32.to_le_bytes());
    anchor.extend(xsdt.to_le_bytes());
    anchor.extend([0; 4]);
    anchor
}

fn local_apic(id: u8, flags: u32) -> Vec<u8> {
    [&[MADT_LOCAL_APIC, 8, id, id][..], &flags.to_le_bytes()].concat()
}

fn local_x2apic(id: u32, flags: u32) -> Vec<u8> {
    [&[MADT_LOCAL_X2APIC, 16, 0, 0][..], &id.to_le_bytes(), &flags.to_le_bytes(), &[0; 4]].concat()
}

fn madt(entries: &[Vec<u8>]) -> Vec<u8> {
    acpi_table(b"APIC", &[vec![0; 8], entries.concat()].concat())
}

const RSDT: u32 = 0x10_2000;
const MADT: u32 = 0x10_3000;

fn acpi(memory: &mut Memory, entries: &[Vec<u8>]) {
    memory.put(
        RSDT as usize,
        &acpi_table(b"RSDT", &[0x10_4000_u32.to_le_bytes(), MADT.to_le_bytes()].concat()),
    );
    memory.put(0x10_4000, &acpi_table(b"FACP", &[0; 80]));
    memory.put(MADT as usize, &madt(entries));
}

fn mp(memory: &mut Memory, ids: &[(u8, u8)]) {
    let mut table = vec![0; MP_HEADER_BYTES];
    table[..4].copy_from_slice(b"PCMP");
    for (id, flags) in ids {
        table.extend([MP_PROCESSOR, *id, 0x14, *flags]);
        table.extend([0; 16]);
    }
    // A bus ends the list of processors.
    table.extend([1, 0, b'I', b'S', b'A', b' ', b' ', b' ']);
    let bytes = table.len() as u16;
    table[4..6].copy_from_slice(&bytes.to_le_bytes());
    memory.put(0x9_FC10, &summed(table, 7));
    let mut anchor = [b"_MP_", &0x9_FC10_u32.to_le_bytes()[..], &[1, 4, 0, 0, 0, 0, 0, 0]].concat();
    anchor = summed(anchor, 10);
    memory.put(0x9_FC00, &anchor);
}

#[test]
fn enabled_processors_are_read_from_acpi_at_any_anchor() {
    let entries = [
        local_apic(0, 1),
        local_apic(1, 1),
        vec![1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        local_apic(2, 0),
        local_x2apic(7, 1),
    ];
    for (place, loader_address) in [(0xF_59A0, 0), (0x9_FC80, 0), (0x10_1000, 0x10_1000)] {
        let mut memory = Memory::new();
        memory.put(EXTENSION_POINTER as usize, &0x9FC0_u16.to_le_bytes());
        memory.put(place, &anchor(0, RSDT, 0));
        acpi(&mut memory, &entries);
        assert_eq!(memory.others(loader_address), [1, 7], "{place:#x}");
    }
}

#[test]
fn acpi_anchor_of_revision_2_gives_the_xsdt() {
    let mut memory = Memory::new();
    memory.put(0xF_0000, &anchor(2, RSDT, 0x10_5000));
    memory.put(0x10_5000, &acpi_table(b"XSDT", &u64::from(MADT).to_le_bytes()));
    memory.put(MADT as usize, &madt(&[local_apic(0, 1), local_apic(4, 1)]));
    assert_eq!(memory.others(0), [4]);
}

#[test]
fn processors_are_read_from_an_mp_table_without_acpi() {
    let mut memory = Memory::new();
    mp(&mut memory, &[(0, 3), (1, 1), (2, 0), (3, 1)]);
    assert_eq!(memory.others(0), [1, 3]);
}

#[test]
fn table_with_a_wrong_checksum_is_ignored() {
    let mut memory = Memory::new();
    memory.put(0xF_0000, &anchor(0, RSDT, 0));
    acpi(&mut memory, &[local_apic(0, 1), local_apic(1, 1)]);
    memory.0[MADT as usize + 20] ^= 1;
    assert_eq!(memory.others(0), []);
    let mut memory = Memory::new();
    mp(&mut memory, &[(0, 3), (1, 1)]);
    memory.0[0x9_FC20] ^= 1;
    assert_eq!(memory.others(0), []);
}

#[test]
fn processors_beyond_the_core_limit_are_not_used() {
    let mut memory = Memory::new();
    memory.put(0xF_0000, &anchor(0, RSDT, 0));
    acpi(&mut memory, &(0..100).map(|id| local_apic(id, 1)).collect::<Vec<_>>());
    assert_eq!(memory.others(0), (1..CORES_MAX as u32).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn reading_random_acpi_tables_ends(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..300_usize) {
        let mut memory = Memory::new();
        memory.put(0xF_0000, &anchor(0, RSDT, 0));
        acpi(&mut memory, &[local_apic(0, 1), local_apic(1, 1)]);
        mp(&mut memory, &[(0, 3), (1, 1)]);
        for start in [0xF_0000, RSDT as usize, MADT as usize, 0x9_FC00] {
            memory.put(start + at, &bytes);
        }
        prop_assert!(memory.others(0).len() < CORES_MAX);
    }

    #[test]
    fn reading_random_acpi_tables_with_a_valid_checksum_ends(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut memory = Memory::new();
        memory.put(0xF_0000, &anchor(0, RSDT, 0));
        acpi(&mut memory, &[]);
        memory.put(MADT as usize, &acpi_table(b"APIC", &body));
        prop_assert!(memory.others(0).len() < CORES_MAX);
    }
}
