//! Writes text into lent bytes, without formatting machinery. After a text that does not fit,
//! nothing more is written, and [`Writer::finish`] reports this.

use core::fmt;

pub(crate) struct Writer<'a> {
    bytes: &'a mut [u8],
    written: usize,
    fits: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Writer<'a> {
        Writer { bytes, written: 0, fits: true }
    }

    #[inline]
    pub(crate) fn put(&mut self, text: &[u8]) {
        match self.bytes.get_mut(self.written..).and_then(|rest| rest.get_mut(..text.len())) {
            Some(target) if self.fits => {
                target.copy_from_slice(text);
                self.written += text.len();
            }
            _ => self.fits = false,
        }
    }

    /// Writes `text` with `?` for every byte that `passes` rejects.
    pub(crate) fn put_filtered(&mut self, text: &[u8], passes: impl Fn(u8) -> bool) {
        let start = self.written;
        self.put(text);
        let copied = self.bytes.get_mut(start..self.written).unwrap_or_default();
        // Every byte is written back, so that the loop needs no branch.
        copied.iter_mut().for_each(|byte| *byte = if passes(*byte) { *byte } else { b'?' });
    }

    pub(crate) fn put_decimal(&mut self, byte: u8) {
        let [hundreds, tens, ones] = [b'0' + byte / 100, b'0' + byte / 10 % 10, b'0' + byte % 10];
        match byte {
            0..10 => self.put(&[ones]),
            10..100 => self.put(&[tens, ones]),
            100.. => self.put(&[hundreds, tens, ones]),
        }
    }

    /// The number of bytes written. `None`: not everything fitted.
    pub(crate) fn finish(self) -> Option<usize> {
        self.fits.then_some(self.written)
    }
}

impl fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes());
        if self.fits { Ok(()) } else { Err(fmt::Error) }
    }
}
