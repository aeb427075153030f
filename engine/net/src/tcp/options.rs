//! TCP options: those that we understand, from the wire and to it (RFC 9293 §3.2, RFC 7323 §2).
//!
//! A malformed list ends the parse and keeps what came before it: the segment itself is still good. Further options
//! (SACK, timestamps) get a field here, an arm in `parse` and a line in `emit`.

use smoltcp::wire::TcpOption;

/// The most bytes that [`Options::emit`] writes: MSS 4, window scale 3, and a no-operation for alignment.
pub const OPTIONS_BYTES_MAX: usize = 8;

/// The largest shift that a window may be scaled by (RFC 7323 §2.3).
pub const WINDOW_SHIFT_MAX: u8 = 14;

/// What the options of one segment say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The largest payload that the sender of the option takes in one segment, in bytes. Only on a SYN.
    pub mss: Option<u16>,
    /// How far the sender of the option shifts its windows to the right. Only on a SYN. At most 14 after `parse`.
    pub window_scale: Option<u8>,
}

impl Options {
    /// Reads the options part of a header. Unknown options are passed over.
    pub fn parse(bytes: &[u8]) -> Options {
        let mut options = Options::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            match TcpOption::parse(rest) {
                Ok((after, option)) => {
                    options.learn(option);
                    if option == TcpOption::EndOfList || after.len() >= rest.len() {
                        break;
                    }
                    rest = after;
                }
                Err(_) => break,
            }
        }
        options
    }

    fn learn(&mut self, option: TcpOption<'_>) {
        match option {
            TcpOption::MaxSegmentSize(mss) => self.mss = Some(mss),
            TcpOption::WindowScale(shift) => self.window_scale = Some(shift.min(WINDOW_SHIFT_MAX)),
            _ => {}
        }
    }

    /// The bytes that `emit` writes: a multiple of four.
    pub fn len(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        mss + scale
    }

    /// Whether there is no option.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the options to the start of `bytes`, which must hold [`Options::len`] bytes; a shorter one gets none of
    /// those that do not fit.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut rest = bytes;
        if let Some(mss) = self.mss
            && rest.len() >= 4
        {
            rest = TcpOption::MaxSegmentSize(mss).emit(rest);
        }
        if let Some(shift) = self.window_scale
            && rest.len() >= 4
        {
            rest = TcpOption::NoOperation.emit(rest);
            TcpOption::WindowScale(shift).emit(rest);
        }
    }
}
