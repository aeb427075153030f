//! A text of a summary while it is made, in a buffer of fixed size.
//!
//! Invariants: the text is UTF-8, and every character in it is whole.

/// The mark of a cut text.
const ELLIPSIS: &[u8] = "…".as_bytes();

/// The beginning of a text, of `N` bytes at most.
#[derive(Debug)]
pub(super) struct TextBuffer<const N: usize> {
    bytes: [u8; N],
    length: usize,
    /// Whether there was no space for the whole text.
    is_over: bool,
}

impl<const N: usize> Default for TextBuffer<N> {
    fn default() -> TextBuffer<N> {
        TextBuffer { bytes: [0; N], length: 0, is_over: false }
    }
}

impl<const N: usize> TextBuffer<N> {
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The number of bytes.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Whether there was no space for the whole text, so that it will be cut.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Adds printable ASCII.
    #[inline]
    pub(super) fn push_ascii(&mut self, text: &[u8]) {
        let room = N - self.length.min(N);
        let count = text.len().min(room);
        self.is_over |= text.len() > room;
        let place = self.bytes.get_mut(self.length..).and_then(|free| free.get_mut(..count));
        if let (Some(place), Some(text)) = (place, text.get(..count)) {
            place.copy_from_slice(text);
            self.length += count;
        }
    }

    pub(super) fn push(&mut self, c: char) {
        let mut bytes = [0; 4];
        let bytes = c.encode_utf8(&mut bytes).as_bytes();
        let place = self.bytes.get_mut(self.length..).and_then(|free| free.get_mut(..bytes.len()));
        match place.filter(|_| !self.is_over) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.is_over = true,
        }
    }

    /// Leaves at most `bytes_max` bytes, which is `N` or less. A text that is cut ends in `…`.
    pub(super) fn cut(&mut self, bytes_max: usize) {
        if self.length <= bytes_max && !self.is_over {
            return;
        }
        let mut end = bytes_max.saturating_sub(ELLIPSIS.len()).min(self.length);
        let goes_on = |byte: &u8| byte & 0xc0 == 0x80;
        while end > 0 && end < self.length && self.bytes.get(end).is_some_and(goes_on) {
            end -= 1;
        }
        let kept = self.bytes.get(..end).and_then(|kept| core::str::from_utf8(kept).ok());
        self.length = kept.unwrap_or_default().trim_end().len();
        self.is_over = false;
        self.push_ascii(ELLIPSIS);
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
        self.is_over = false;
    }
}
