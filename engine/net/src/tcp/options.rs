//! TCP options: those that we understand, from the wire and to it (RFC 9293 §3.2, RFC 7323 §2 and §3).
//!
//! A malformed list ends the parse and keeps what came before it: the segment itself is still good. What nearly every
//! segment carries, timestamps alone in the layout that RFC 7323 appendix A recommends, is read and written without a
//! search.

use smoltcp::wire::TcpOption;

/// The most bytes that [`Options::emit`] writes: all that a header has room for.
pub const OPTIONS_BYTES_MAX: usize = 40;

/// What stands before the values when timestamps are the first option: two no-operations, kind and length.
const TIMESTAMPS_ALONE: [u8; 4] = [1, 1, 8, 10];

/// The largest shift that a window may be scaled by (RFC 7323 §2.3).
pub const WINDOW_SHIFT_MAX: u8 = 14;

/// A timestamp option (RFC 7323 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: what the sender's clock showed.
    pub value: u32,
    /// TSecr: what the receiver's clock had shown, as the sender last learned it. Counts only with an acknowledgment.
    pub echo: u32,
}

/// What the options of one segment say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The largest payload that the sender of the option takes in one segment, in bytes. Only on a SYN.
    pub mss: Option<u16>,
    /// How far the sender of the option shifts its windows to the right. Only on a SYN. At most 14 after `parse`.
    pub window_scale: Option<u8>,
    /// Timestamps: on a SYN to ask for them, later on every segment if both ends did.
    pub timestamps: Option<Timestamps>,
}

impl Options {
    /// Reads the options part of a header. Unknown options are passed over.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Options {
        if let [1, 1, 8, 10, a, b, c, d, e, f, g, h] = *bytes {
            let (value, echo) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            return Options { timestamps: Some(Timestamps { value, echo }), ..Options::default() };
        }
        Options::parse_list(bytes)
    }

    fn parse_list(bytes: &[u8]) -> Options {
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
            TcpOption::TimeStamp { tsval, tsecr } => {
                self.timestamps = Some(Timestamps { value: tsval, echo: tsecr });
            }
            _ => {}
        }
    }

    /// The bytes that `emit` writes: a multiple of four.
    #[inline]
    pub fn len(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        timestamps + mss + scale
    }

    /// Whether there is no option.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the options to the start of `bytes`, which must hold [`Options::len`] bytes; a shorter one gets none of
    /// those that do not fit.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8]) {
        let bytes = match self.timestamps {
            Some(stamps) => stamps.emit(bytes),
            None => Some(bytes),
        };
        if let Some(rest) = bytes.filter(|_| self.mss.is_some() || self.window_scale.is_some()) {
            self.emit_list(rest);
        }
    }

    fn emit_list(&self, bytes: &mut [u8]) {
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

impl Timestamps {
    /// Writes them, aligned, and returns the room behind them; `None` when there is no room for them.
    #[inline]
    fn emit(self, bytes: &mut [u8]) -> Option<&mut [u8]> {
        let (room, rest) = bytes.split_first_chunk_mut::<12>()?;
        let (head, stamps) = room.split_at_mut(4);
        head.copy_from_slice(&TIMESTAMPS_ALONE);
        stamps.copy_from_slice(&(u64::from(self.value) << 32 | u64::from(self.echo)).to_be_bytes());
        Some(rest)
    }
}
