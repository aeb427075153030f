//! The list of processors from the firmware, in ACPI's MADT or in the older MP table.
//!
//! ACPI 6.5, sections 5.2.5 (RSDP), 5.2.7 and 5.2.8 (RSDT, XSDT), 5.2.12 (MADT); MultiProcessor
//! Specification 1.4, chapter 4. QEMU's `q35` has ACPI. QEMU's `microvm` without ACPI has the MP
//! table.
//!
//! Both descriptions begin below 1 MiB, which the boot tables still map ([`Place::find`]). The
//! tables of ACPI may be anywhere, and are read after memory has been mapped
//! ([`Place::processors`]).
//!
//! Invariants:
//! - No value in a table is trusted: lengths are bounded, checksums are verified, and an invalid
//!   table is ignored.
//! - A processor that the firmware marks as disabled is never started.

use crate::cpu::cores::CORES_MAX;
use core::ops::Range;

/// The address, in the BIOS data area, of the segment number of its extension.
const EXTENSION_POINTER: u64 = 0x40E;
const EXTENSION_BYTES: u64 = 1 << 10;
const LOW_END: u64 = 0xA_0000;
/// The last KiB below 640 KiB, where an MP table may also begin.
const BASE_MEMORY_LAST: Range<u64> = 0x9_FC00..LOW_END;
const BIOS_AREA: Range<u64> = 0xE_0000..0x10_0000;

/// The anchors of ACPI and of the MP table are at multiples of 16 bytes.
const ANCHOR_STEP: usize = 16;
const ANCHOR_ACPI: &[u8] = b"RSD PTR ";
const ANCHOR_ACPI_BYTES: u64 = 20;
const ANCHOR_MP: &[u8] = b"_MP_";

/// No table is above this address: identity mapping ends here.
const ADDRESS_END: u64 = 1 << 46;

const HEADER_BYTES: usize = 36;
/// A limit that is longer than any table of processors.
const TABLE_BYTES_MAX: u32 = 64 << 10;

const MADT_ENTRIES: usize = 44;
const MADT_LOCAL_APIC: u8 = 0;
const MADT_LOCAL_X2APIC: u8 = 9;
const MADT_ENABLED: u32 = 1;

const MP_HEADER_BYTES: usize = 44;
const MP_PROCESSOR: u8 = 0;
const MP_PROCESSOR_BYTES: usize = 20;
const MP_ENABLED: u8 = 1;

/// The highest usable APIC id. Interrupt messages of devices do not reach processors with a higher
/// id.
const APIC_ID_MAX: u32 = 254;

/// The APIC ids of usable processors, in the firmware's order, at most [`CORES_MAX`] of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Processors {
    ids: [u32; CORES_MAX],
    count: usize,
}

/// The location of the processors' description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In a table that one of ACPI's root tables refers to: the address of the root table, and the
    /// size of each address in the root table.
    Acpi { root: u64, address_bytes: usize },
    /// In an MP table, which has been read already.
    Mp(Processors),
    /// No description was found: only the running processor is used.
    Nowhere,
}

impl Processors {
    fn add(&mut self, id: u32, is_enabled: bool) {
        if is_enabled
            && id <= APIC_ID_MAX
            && let Some(place) = self.ids.get_mut(self.count)
        {
            *place = id;
            self.count += 1;
        }
    }

    /// The APIC ids of the other cores: all except `this`, and at most `CORES_MAX - 1`.
    pub(super) fn others(&self, this: u32) -> impl Iterator<Item = u32> {
        self.ids.iter().take(self.count).copied().filter(move |&id| id != this).take(CORES_MAX - 1)
    }
}

impl Place {
    /// Finds the processors' description. `loader_address`: the address of ACPI's description from
    /// the boot loader, or zero. `read`: returns the bytes of an address range below 1 GiB.
    pub(super) fn find<'a>(loader_address: u64, read: impl Fn(Range<u64>) -> &'a [u8]) -> Place {
        let extension = read(EXTENSION_POINTER..EXTENSION_POINTER + 2).first_chunk::<2>();
        let extension = extension.map_or(0, |&segment| u64::from(u16::from_le_bytes(segment)) << 4);
        let extension = extension..(extension + EXTENSION_BYTES).min(LOW_END);
        let is_readable = loader_address != 0 && loader_address < 1 << 30;
        let area_bytes = ANCHOR_ACPI_BYTES + ANCHOR_STEP as u64;
        let acpi = is_readable
            .then(|| loader_address..loader_address + area_bytes)
            .into_iter()
            .chain([extension.clone(), BIOS_AREA])
            .find_map(|area| acpi_anchor(read(area)));
        let mp = || {
            [extension.clone(), BASE_MEMORY_LAST, BIOS_AREA]
                .into_iter()
                .find_map(|area| mp_anchor(read(area)))
        };
        match acpi {
            Some(place) => place,
            None => {
                mp().and_then(|table| mp_processors(table, &read)).map_or(Place::Nowhere, Place::Mp)
            }
        }
    }

    /// Reads the processors from their description. `read`: returns the bytes of any address range.
    pub(super) fn processors<'a>(self, mut read: impl FnMut(Range<u64>) -> &'a [u8]) -> Processors {
        match self {
            Place::Acpi { root, address_bytes } => {
                acpi_processors(root, address_bytes, &mut read).unwrap_or_default()
            }
            Place::Mp(processors) => processors,
            Place::Nowhere => Processors::default(),
        }
    }
}

/// The parts of `area` that begin with `anchor` at an aligned offset.
fn anchors<'a>(area: &'a [u8], anchor: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    (0..area.len())
        .step_by(ANCHOR_STEP)
        .filter_map(move |at| area.get(at..))
        .filter(move |at| at.starts_with(anchor))
}

fn acpi_anchor(area: &[u8]) -> Option<Place> {
    anchors(area, ANCHOR_ACPI).find_map(|anchor| {
        is_sum_zero(anchor.get(..ANCHOR_ACPI_BYTES as usize)?).then_some(())?;
        let revision = *anchor.get(15)?;
        let extended =
            anchor.get(24..32).and_then(number).filter(|&root| revision >= 2 && root != 0);
        match (extended, anchor.get(16..20).and_then(number)?) {
            (Some(root), _) => Some(Place::Acpi { root, address_bytes: 8 }),
            (None, 0) => None,
            (None, root) => Some(Place::Acpi { root, address_bytes: 4 }),
        }
    })
}

fn acpi_processors<'a>(
    root: u64,
    address_bytes: usize,
    read: &mut impl FnMut(Range<u64>) -> &'a [u8],
) -> Option<Processors> {
    let addresses = table(root, if address_bytes == 8 { b"XSDT" } else { b"RSDT" }, read)?
        .get(HEADER_BYTES..)?;
    let mut places = addresses.chunks_exact(address_bytes).filter_map(number);
    let madt = places.find_map(|place| table(place, b"APIC", read))?;
    let mut processors = Processors::default();
    let mut entries = madt.get(MADT_ENTRIES..)?;
    while let [kind, bytes, ..] = *entries {
        let Some(entry) = entries.get(..usize::from(bytes)).filter(|entry| entry.len() >= 2) else {
            break;
        };
        let at = |range: Range<usize>| entry.get(range).and_then(number).unwrap_or(0) as u32;
        match kind {
            MADT_LOCAL_APIC if entry.len() >= 8 => {
                processors.add(at(3..4), at(4..8) & MADT_ENABLED != 0)
            }
            MADT_LOCAL_X2APIC if entry.len() >= 12 => {
                processors.add(at(4..8), at(8..12) & MADT_ENABLED != 0)
            }
            _ => {}
        }
        entries = entries.get(usize::from(bytes)..)?;
    }
    Some(processors)
}

/// The table at `address`, if it has this `name` and is valid.
fn table<'a>(
    address: u64,
    name: &[u8; 4],
    read: &mut impl FnMut(Range<u64>) -> &'a [u8],
) -> Option<&'a [u8]> {
    let end = address
        .checked_add(u64::from(TABLE_BYTES_MAX))
        .filter(|&end| address != 0 && end <= ADDRESS_END)?;
    let header = read(address..address + HEADER_BYTES as u64);
    let bytes = header.get(4..8).and_then(number)?;
    let is_sound = header.starts_with(name)
        && (HEADER_BYTES as u64..=u64::from(TABLE_BYTES_MAX)).contains(&bytes);
    let table = is_sound.then(|| read(address..end.min(address + bytes)))?;
    is_sum_zero(table).then_some(table)
}

/// The address of the MP table.
fn mp_anchor(area: &[u8]) -> Option<u64> {
    anchors(area, ANCHOR_MP).find_map(|anchor| {
        is_sum_zero(anchor.get(..16)?).then_some(())?;
        anchor.get(4..8).and_then(number).filter(|&table| table != 0)
    })
}

fn mp_processors<'a>(address: u64, read: &impl Fn(Range<u64>) -> &'a [u8]) -> Option<Processors> {
    // A table above 512 MiB is ignored. The boot tables map 1 GiB, so the whole of every other
    // table is mapped.
    let end = address.checked_add(MP_HEADER_BYTES as u64).filter(|&end| end <= 1 << 29)?;
    let header = read(address..end);
    let bytes =
        header.get(4..6).and_then(number).filter(|&bytes| bytes >= MP_HEADER_BYTES as u64)?;
    let table = read(address..address + bytes);
    if !table.starts_with(b"PCMP") || !is_sum_zero(table) {
        return None;
    }
    // The entries of processors come first, 20 bytes each.
    let mut processors = Processors::default();
    for entry in table.get(MP_HEADER_BYTES..)?.chunks_exact(MP_PROCESSOR_BYTES) {
        let [MP_PROCESSOR, id, _, flags, ..] = *entry else { break };
        processors.add(u32::from(id), flags & MP_ENABLED != 0);
    }
    Some(processors)
}

/// A little-endian number of at most eight bytes.
fn number(bytes: &[u8]) -> Option<u64> {
    let mut whole = [0; 8];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(whole))
}

fn is_sum_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

#[cfg(test)]
mod tests;
