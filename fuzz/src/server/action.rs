//! The actions of an input, in their order.

use arbitrary::{Arbitrary, Result, Unstructured};

/// One action.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Open {
        port: Port,
        family: Family,
    },
    /// A client sends one of [`PHRASES`], up to three times in one segment.
    Say {
        which: u8,
        phrase: u8,
        times: u8,
    },
    /// A client sends any bytes.
    SayBytes {
        which: u8,
        bytes: [u8; 12],
    },
    /// A client sends the same byte many times.
    SayMuch {
        which: u8,
        byte: u8,
        count: u16,
    },
    Close {
        which: u8,
    },
    Reset {
        which: u8,
    },
    /// The engine and the clients have this many turns.
    Turns {
        count: u8,
    },
    /// Time passes.
    Wait {
        millis: u16,
    },
    /// From now on the disk waits for [`Action::Disk`], or works at once.
    DiskWaits {
        waits: bool,
    },
    /// The disk carries out this many of its waiting requests, in any order.
    Disk {
        count: u8,
    },
    /// One of the frames to the engine is lost, doubled, delayed, or damaged.
    Mishap {
        kind: Mishap,
        frame: u8,
    },
    /// Another host sends a frame.
    Frame {
        kind: u8,
        bytes: [u8; 24],
    },
    /// From now on the card has room for at most this many frames.
    Ring {
        frames: u8,
    },
}

/// One byte selects the action, and the following bytes are its parameters. So a whole conversation
/// fits in a short input. Half of the values of the first byte are phrases of a client.
impl Arbitrary<'_> for Action {
    fn arbitrary(input: &mut Unstructured<'_>) -> Result<Action> {
        let what = u8::arbitrary(input)?;
        if what >= 0x80 {
            return Ok(Action::Say {
                which: input.arbitrary()?,
                phrase: what & 0x1f,
                times: what >> 5 & 3,
            });
        }
        Ok(match what % 16 {
            0..4 => {
                Action::Open { port: Port::numbered(what >> 4), family: Family::numbered(what) }
            }
            4 => Action::SayBytes { which: input.arbitrary()?, bytes: input.arbitrary()? },
            5 => Action::SayMuch {
                which: input.arbitrary()?,
                byte: input.arbitrary()?,
                count: input.arbitrary()?,
            },
            6 => Action::Close { which: input.arbitrary()? },
            7 => Action::Reset { which: input.arbitrary()? },
            8 | 9 => Action::Turns { count: input.arbitrary()? },
            10 => Action::Wait { millis: input.arbitrary()? },
            11 => Action::DiskWaits { waits: input.arbitrary()? },
            12 => Action::Disk { count: input.arbitrary()? },
            13 => Action::Mishap { kind: input.arbitrary()?, frame: input.arbitrary()? },
            14 => Action::Frame { kind: input.arbitrary()?, bytes: input.arbitrary()? },
            _ => Action::Ring { frames: input.arbitrary()? },
        })
    }
}

/// The service that a client connects to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Port {
    Smtp,
    Pop3,
    Http,
}

impl Port {
    fn numbered(number: u8) -> Port {
        match number % 3 {
            0 => Port::Smtp,
            1 => Port::Pop3,
            _ => Port::Http,
        }
    }

    pub(super) fn number(self) -> u16 {
        match self {
            Port::Smtp => 25,
            Port::Pop3 => 110,
            Port::Http => 80,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    fn numbered(number: u8) -> Family {
        if number.is_multiple_of(2) { Family::Ipv4 } else { Family::Ipv6 }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Mishap {
    Lost,
    Twice,
    Overtaken,
    Spoiled(u16),
}

/// Text that clients send: valid and invalid commands of each protocol.
pub(super) const PHRASES: [&str; 32] = [
    "EHLO a.test\r\n",
    "MAIL FROM:<a@a.test>\r\n",
    "MAIL FROM:<a@a.test> BODY=8BITMIME SIZE=100\r\n",
    "RCPT TO:<ada@barepost.test>\r\n",
    "RCPT TO:<grace@barepost.test>\r\n",
    "RCPT TO:<nobody@barepost.test>\r\n",
    "DATA\r\n",
    "Subject: a\r\n\r\ntext\r\n",
    "..\r\n.\r\n",
    ".\r\n",
    "\r\n.\r\n",
    "RSET\r\n",
    "QUIT\r\n",
    "EHLO b\r\nMAIL FROM:<>\r\nRCPT TO:<ada@barepost.test>\r\nDATA\r\n",
    "a message in one piece\r\n.\r\n",
    "USER ada@barepost.test\r\n",
    "PASS lovelace\r\n",
    "PASS wrong\r\n",
    "USER grace@barepost.test\r\nPASS lovelace\r\n",
    "STAT\r\n",
    "LIST\r\nUIDL\r\n",
    "RETR 1\r\n",
    "TOP 1 1\r\nRETR 2\r\n",
    "DELE 1\r\n",
    "NOOP\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=1-4,6-\r\n\r\n",
    "HEAD /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "5\r\nabcde\r\n0\r\n\r\n",
    "GET / HT",
];
