//! `[disk]`: the format of the disk.

use super::document::Section;
use super::error::ConfigurationError;

/// The format that a disk is converted to.
pub const DISK_FORMAT: u32 = 4;

/// The format that the disk should have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DiskFormat {
    /// It keeps its format. A new disk has [`DISK_FORMAT`].
    #[default]
    Kept,
    /// A disk of an earlier format is converted to [`DISK_FORMAT`].
    Newest,
}

/// The value of `format` in the section.
pub(super) fn format(section: &Section<'_, '_>) -> Result<DiskFormat, ConfigurationError> {
    section.refuse_unknown(&["format"])?;
    let Some(item) = section.optional("format") else { return Ok(DiskFormat::Kept) };
    match item.integer() {
        Some(number) if number == u64::from(DISK_FORMAT) => Ok(DiskFormat::Newest),
        _ => Err(item.error(
            format_args!("a disk is converted to format {DISK_FORMAT} alone"),
            format_args!("{DISK_FORMAT}, or no `format`: the disk keeps the one that it has"),
        )),
    }
}
