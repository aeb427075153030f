//! `[disk]`: the format of the disk.

use alloc::format;

use super::document::UncheckedSection;
use super::error::ConfigurationError;
use super::keys::keys;

/// The newest format, which a disk can be converted to.
pub const DISK_FORMAT: u32 = 4;

keys! {
    KEYS, described, "[disk]", [],
    "The format of the disk, see [format.md](format.md).";
    "format" {
        form: "integer",
        default: format!("a disk keeps its format, and a new disk gets format {DISK_FORMAT}"),
        range: DISK_FORMAT,
        example: "4",
        meaning: "Converts a disk of format 3 at the next start. Versions of Barepost that do not \
            know format 4 refuse the disk after that.",
    }
}

/// The format that the disk should have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DiskFormat {
    /// An existing disk keeps its format. A new disk gets [`DISK_FORMAT`].
    #[default]
    Kept,
    /// A disk of an earlier format is converted to [`DISK_FORMAT`].
    Newest,
}

/// Reads the value of `format` in the section.
pub(super) fn format(table: UncheckedSection<'_, '_>) -> Result<DiskFormat, ConfigurationError> {
    let section = table.section(KEYS)?;
    let Some(item) = section.optional("format") else { return Ok(DiskFormat::Kept) };
    match item.integer() {
        Some(number) if number == u64::from(DISK_FORMAT) => Ok(DiskFormat::Newest),
        _ => Err(item.error(
            format_args!("a disk can only be converted to format {DISK_FORMAT}"),
            format_args!("{DISK_FORMAT}, or no `format` to keep the format of the disk"),
        )),
    }
}
