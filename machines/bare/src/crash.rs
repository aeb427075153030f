//! The crash report that the panic path writes to the disk: one sector of text.
//!
//! Format: the first line is `barepost crash 1`. The second line has the machine's uptime and the
//! time of day. The printed message follows, truncated at the end of the sector. Zeros fill the
//! rest.

use core::fmt::{self, Write};
use machine::{Instant, SECTOR_BYTES, UnixTime};

/// The beginning of the sector.
pub const HEADING: &str = "barepost crash 1\n";

/// The sector for a life that ended with `message`.
pub(crate) fn encode(
    age: Instant,
    time: Option<UnixTime>,
    message: fmt::Arguments<'_>,
) -> [u8; SECTOR_BYTES] {
    let mut text = Text { bytes: [0; SECTOR_BYTES], filled: 0 };
    let seconds = time.map_or(0, UnixTime::seconds);
    let _ = write!(text, "{HEADING}after {age} s, at {seconds} s since 1970\n{message}\n");
    text.bytes
}

/// The text of a crash sector, without its heading; `None` if the sector has none.
pub fn decode(sector: &[u8]) -> Option<&str> {
    let text = sector.strip_prefix(HEADING.as_bytes())?;
    let text = text.split(|&byte| byte == 0).next()?;
    match core::str::from_utf8(text) {
        Ok(text) => Some(text),
        // The message was truncated within a character.
        Err(error) => core::str::from_utf8(text.get(..error.valid_up_to())?).ok(),
    }
}

struct Text {
    bytes: [u8; SECTOR_BYTES],
    filled: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for (place, byte) in self.bytes.iter_mut().skip(self.filled).zip(text.bytes()) {
            *place = byte;
        }
        self.filled = SECTOR_BYTES.min(self.filled + text.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
