//! The size of a decoded body in base64, which is computed while the lines of the body pass.

/// The bytes of a body in base64 that stand for no content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Base64Size {
    /// The number of bytes of white space, with the line ends.
    space: u64,
    /// The number of `=` after the last other character.
    padding: u64,
}

impl Base64Size {
    /// Takes a line, or a piece of one.
    pub(super) fn piece_arrived(&mut self, piece: &[u8]) {
        let is_space = |byte: &&u8| **byte <= b' ';
        self.space += piece.iter().filter(is_space).count() as u64;
        let is_of_end = |byte: &&u8| is_space(byte) || **byte == b'=';
        let end = piece.iter().rev().take_while(is_of_end).count();
        if end < piece.len() {
            self.padding = 0;
        }
        let end = piece.iter().rev().take(end);
        self.padding += end.filter(|byte| **byte == b'=').count() as u64;
    }

    /// The size of the content. `bytes`: the number of bytes of all pieces.
    pub(super) fn content_bytes(self, bytes: u64) -> u64 {
        let characters = bytes.saturating_sub(self.space);
        let content = characters.saturating_sub(self.padding);
        content / 4 * 3 + content % 4 * 3 / 4
    }
}
