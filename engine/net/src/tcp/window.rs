//! Receive window.

/// The window that a SYN names: not scaled yet, whatever is agreed on (RFC 7323 §2.2). Bytes.
pub const WINDOW_ON_SYN: u16 = u16::MAX;

/// How far our windows are shifted when the peer scales too.
pub const WINDOW_SHIFT: u8 = 3;
