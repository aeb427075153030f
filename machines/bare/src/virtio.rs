//! Virtio 1.2 devices: the network card, the disk and the entropy source, over PCI or memory-mapped
//! registers.
//!
//! - `transport`: the registers of a device, with the same interface for both buses;
//! - `queue`: split virtqueues with event index;
//! - `net`, `block`, `random`: the drivers.

pub(crate) mod block;
pub(crate) mod lent;
pub(crate) mod net;
pub(crate) mod queue;
pub(crate) mod random;
pub(crate) mod transport;

use core::fmt;
use transport::Transport;

/// Device numbers (virtio 1.2, section 5).
pub(crate) const DEVICE_NET: u32 = 1;
pub(crate) const DEVICE_BLOCK: u32 = 2;
pub(crate) const DEVICE_RANDOM: u32 = 4;

/// Feature bits that are the same for all devices (section 6).
pub(crate) const FEATURE_EVENT_INDEX: u64 = 1 << 29;
pub(crate) const FEATURE_VERSION_1: u64 = 1 << 32;

const STATUS_ACKNOWLEDGE: u8 = 1;
const STATUS_DRIVER: u8 = 2;
const STATUS_DRIVER_OK: u8 = 4;
const STATUS_FEATURES_OK: u8 = 8;
const STATUS_FAILED: u8 = 128;

/// The reason why a device cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeviceError {
    /// The device does not complete a reset.
    Stuck,
    /// The device supports only versions before 1.
    Legacy,
    /// The device does not accept the features that it offered.
    Fickle,
    /// The device lacks a queue of the size that the driver needs.
    Queue,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            DeviceError::Stuck => "it does not recover from a reset",
            DeviceError::Legacy => "it does not support virtio 1",
            DeviceError::Fickle => "it rejects the features that it offered",
            DeviceError::Queue => "its queues are too short",
        })
    }
}

/// Resets the device and negotiates its features (section 3.1.1). `wanted`: returns the features to
/// use, given those that the device offers. Returns the agreed features.
pub(crate) fn agree(
    transport: &Transport,
    wanted: impl FnOnce(u64) -> u64,
) -> Result<u64, DeviceError> {
    reset(transport)?;
    transport.write_status(STATUS_ACKNOWLEDGE);
    transport.write_status(STATUS_ACKNOWLEDGE | STATUS_DRIVER);
    let offered = transport.offered_features();
    if offered & FEATURE_VERSION_1 == 0 {
        transport.write_status(STATUS_FAILED);
        return Err(DeviceError::Legacy);
    }
    let agreed = offered & (wanted(offered) | FEATURE_VERSION_1);
    transport.accept_features(agreed);
    transport.write_status(STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK);
    if transport.status() & STATUS_FEATURES_OK == 0 {
        transport.write_status(STATUS_FAILED);
        return Err(DeviceError::Fickle);
    }
    Ok(agreed)
}

/// Starts the device. Its queues are set up.
pub(crate) fn go(transport: &Transport) {
    transport
        .write_status(STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK | STATUS_DRIVER_OK);
}

/// Resets the device. When this returns `Ok`, the device has stopped accessing memory.
pub(crate) fn reset(transport: &Transport) -> Result<(), DeviceError> {
    const READINGS_MAX: u32 = 1_000_000;
    transport.write_status(0);
    let is_reset = (0..READINGS_MAX).any(|_| transport.status() == 0);
    if is_reset { Ok(()) } else { Err(DeviceError::Stuck) }
}
