//! Devices on the kernel command line: `virtio_mmio.device=SIZE@BASE:LINE[:ID]`, as QEMU's microvm
//! and Firecracker write it.

/// One virtio device with memory-mapped registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemoryDevice {
    pub(super) base: u64,
    pub(super) bytes: u64,
    /// The interrupt line of the device.
    pub(super) line: u32,
}

/// The maximum number of devices that are used.
pub(super) const DEVICES_MAX: usize = 32;

/// The devices on the command line, in their order there. The result is a copy, because the memory
/// of the command line is reused.
pub(super) fn devices(command_line: &[u8]) -> [Option<MemoryDevice>; DEVICES_MAX] {
    const NAME: &[u8] = b"virtio_mmio.device=";
    let mut words = command_line.split(|byte| byte.is_ascii_whitespace());
    let mut found = core::iter::from_fn(|| words.find_map(|word| parse(word.strip_prefix(NAME)?)));
    core::array::from_fn(|_| found.next())
}

fn parse(text: &[u8]) -> Option<MemoryDevice> {
    let (bytes, rest) = core::str::from_utf8(text).ok()?.split_once('@')?;
    let mut parts = rest.split(':');
    let (base, line) = (number(parts.next()?)?, number(parts.next()?)?);
    let bytes = number(bytes)?;
    let is_sound =
        (0x200..=0x10_0000).contains(&bytes) && base != 0 && base.checked_add(bytes).is_some();
    is_sound.then_some(MemoryDevice { base, bytes, line: u32::try_from(line).ok()? })
}

/// A number as Linux writes it: decimal or 0x, with an optional suffix K or M.
fn number(text: &str) -> Option<u64> {
    let (text, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (text.get(..text.len() - 1)?, 10),
        b'M' | b'm' => (text.get(..text.len() - 1)?, 20),
        _ => (text, 0),
    };
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    value.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests;
