//! A capture file of frames with their times, for tcpdump and Wireshark (pcap, version 2.4, link
//! type Ethernet).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The file header: magic number, version, two zero fields, longest frame, and Ethernet, each in
/// the host's byte order.
const LINK_ETHERNET: u32 = 1;
const MAGIC: u32 = 0xA1B2_C3D4;

/// The file while it is written.
pub(crate) struct Capture(BufWriter<File>);

impl Capture {
    pub(crate) fn create(path: &Path) -> io::Result<Capture> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&MAGIC.to_ne_bytes())?;
        file.write_all(&[2_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat())?;
        for field in [0, 0, u32::from(u16::MAX), LINK_ETHERNET] {
            file.write_all(&field.to_ne_bytes())?;
        }
        Ok(Capture(file))
    }

    pub(crate) fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let bytes = frame.len() as u32;
        for field in [now.as_secs() as u32, now.subsec_micros(), bytes, bytes] {
            self.0.write_all(&field.to_ne_bytes())?;
        }
        self.0.write_all(frame)
    }

    /// Writes the buffered rest.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}
