//! The language of the TCP tests: one connection, with a clock that only the test moves.
//!
//! Segments are written as in `tcpdump`: the flags, the first and last number, then the relevant
//! other fields. `peer("P. 1:101 ack 1")` is a segment that arrives, and `we(". 1:1 ack 101")` is
//! one that must be sent. Numbers are relative to both initial sequence numbers, so the same test
//! can run with any initial numbers. Payloads need not be written: the byte at each position of a
//! stream is known, and every delivered or sent byte is compared with it.
//!
//! After every event the connection may produce output (as at the end of a turn), and its
//! invariants are asserted.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use machine::{Instant, Micros, Piece};

use crate::tcp::{
    Actions, CardFull, CloseOutcome, CloseReason, InitialNumbers, Options, PoolSizes, Pools,
    SackBlock, SackBlocks, SegmentRepr, SegmentToSend, SendLimits, SequenceNumber, Tcb, TcpFlags,
    TcpHandshake, TimestampClock, Timestamps,
};

pub(super) const MSS: u16 = 1000;
pub(super) const SIZES: PoolSizes = PoolSizes { blocks: 400, send_queues: 4, receive_queues: 4 };

/// The byte at `place` of either stream.
pub(super) fn byte_at(place: u32) -> u8 {
    (place.wrapping_mul(2_654_435_761) >> 11) as u8
}

pub(super) fn bytes_at(place: u32, count: usize) -> Vec<u8> {
    (0..count as u32).map(|offset| byte_at(place + offset)).collect()
}

/// Which part of the delivered bytes the session consumes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    TakesAll,
    LeavesAll,
}

pub(super) struct Sent {
    pub(super) segment: SegmentToSend,
    pub(super) payload: Vec<u8>,
}

pub(super) struct Conversation {
    pub(super) tcb: Tcb,
    pub(super) pools: Pools,
    pub(super) now: Instant,
    pub(super) session: Session,
    pub(super) limits: SendLimits,
    /// The number of further frames that the card accepts.
    pub(super) card_room: usize,
    /// The actions of the last event.
    pub(super) actions: Actions,
    iss: SequenceNumber,
    irs: SequenceNumber,
    out: VecDeque<Sent>,
    /// Bytes that were delivered to the session, and bytes that it has queued.
    pub(super) given: u32,
    pub(super) queued: u32,
    peer_shift: u8,
}

/// One segment in the notation of the tests.
struct Written {
    flags: TcpFlags,
    from: u32,
    to: u32,
    ack: Option<u32>,
    win: Option<u32>,
    mss: Option<u16>,
    /// TSval and TSecr.
    val: Option<u32>,
    ecr: Option<u32>,
    /// SACK blocks: relative to our numbers in the peer's segments, and to the peer's numbers in
    /// our segments.
    sacks: Vec<SackBlock>,
    sack_permitted: bool,
    no_sacks: bool,
    /// Whether a router has marked the peer's segment; whether routers may mark ours.
    marked: bool,
    may_be_marked: Option<bool>,
    /// Whether the segment has no timestamps.
    bare: bool,
    wscale: Option<u8>,
}

impl Written {
    fn options(&self) -> Options {
        let timestamps = self.val.map(|value| Timestamps { value, echo: self.ecr.unwrap_or(0) });
        let mut sack = SackBlocks::default();
        self.sacks.iter().for_each(|block| sack.push(*block));
        Options {
            mss: self.mss,
            window_scale: self.wscale,
            timestamps,
            sack_permitted: self.sack_permitted,
            sack,
        }
    }
}

fn parse(text: &str) -> Written {
    let mut words = text.split_whitespace();
    let mut flags = TcpFlags::NONE;
    for flag in words.next().unwrap().chars() {
        flags = flags.with(match flag {
            'S' => TcpFlags::SYN,
            'F' => TcpFlags::FIN,
            'R' => TcpFlags::RST,
            'P' => TcpFlags::PSH,
            '.' => TcpFlags::ACK,
            'E' => TcpFlags::ECE,
            'W' => TcpFlags::CWR,
            '-' => TcpFlags::NONE,
            other => panic!("no such flag: {other}"),
        });
    }
    let (from, to) = words.next().unwrap().split_once(':').unwrap();
    let mut written = Written {
        flags,
        from: from.parse::<i64>().unwrap() as u32,
        to: to.parse::<i64>().unwrap() as u32,
        ack: None,
        win: None,
        mss: None,
        wscale: None,
        val: None,
        ecr: None,
        bare: false,
        sacks: Vec::new(),
        sack_permitted: false,
        no_sacks: false,
        marked: false,
        may_be_marked: None,
    };
    while let Some(word) = words.next() {
        if let Some((start, end)) =
            word.split_once('-').filter(|_| word.starts_with(|first: char| first.is_numeric()))
        {
            let number = |text: &str| SequenceNumber(text.parse::<i64>().unwrap() as u32);
            written.sacks.push(SackBlock { start: number(start), end: number(end) });
            continue;
        }
        let value: i64 = words.next().unwrap().parse().unwrap();
        match word {
            "ack" => written.ack = Some(value as u32),
            "win" => written.win = Some(value as u32),
            "mss" => written.mss = Some(value as u16),
            "wscale" => written.wscale = Some(value as u8),
            "ce" => written.marked = true,
            "ect" => written.may_be_marked = Some(value == 1),
            "none" => written.no_sacks = true,
            "bare" => written.bare = true,
            "sackok" => written.sack_permitted = value == 1,
            "val" => written.val = Some(value as u32),
            "ecr" => written.ecr = Some(value as u32),
            other => panic!("no such word: {other}"),
        }
    }
    written
}

impl Conversation {
    /// An established connection, with numbers that do not wrap soon. The peer's window is 64,000,
    /// not scaled.
    pub(super) fn established() -> Conversation {
        Conversation::established_at(10_000, 500_000)
    }

    /// As [`Conversation::established`], with these initial sequence numbers.
    pub(super) fn established_at(iss: u32, irs: u32) -> Conversation {
        Conversation::with_handshake(TcpHandshake {
            iss: SequenceNumber(iss),
            irs: SequenceNumber(irs),
            mss: MSS,
            peer_window_shift: Some(0),
            round_trip: Some(Micros::from_millis(10)),
            timestamps: None,
            sack_permitted: false,
            ecn: false,
        })
    }

    /// An established connection with timestamps: ours begin at 0, and the peer's at `recent`.
    pub(super) fn stamped(recent: u32) -> Conversation {
        Conversation::with_stamps(recent, false)
    }

    /// As [`Conversation::stamped`], with selective acknowledgments too.
    pub(super) fn stamped_and_selective(recent: u32) -> Conversation {
        Conversation::with_stamps(recent, true)
    }

    fn with_stamps(recent: u32, sack_permitted: bool) -> Conversation {
        let (offset, sent_at) = (0u32.wrapping_sub(1_000_000), Instant(1_000_000_000));
        let handshake = TcpHandshake {
            iss: SequenceNumber(10_000),
            irs: SequenceNumber(500_000),
            mss: MSS,
            peer_window_shift: Some(0),
            round_trip: Some(Micros::from_millis(10)),
            timestamps: Some(TimestampClock { offset, recent }),
            sack_permitted,
            ecn: false,
        };
        let mut conversation =
            Conversation::with_tcb(Tcb::accepted(sent_at, &handshake), sent_at, handshake.iss);
        conversation.peer(&format!(". 1:1 ack 1 win 64000 val {recent} ecr 0")).silence();
        conversation
    }

    /// An established connection with selective acknowledgments.
    pub(super) fn selective() -> Conversation {
        Conversation::with_handshake(TcpHandshake {
            iss: SequenceNumber(10_000),
            irs: SequenceNumber(500_000),
            mss: MSS,
            peer_window_shift: Some(0),
            round_trip: Some(Micros::from_millis(10)),
            timestamps: None,
            sack_permitted: true,
            ecn: false,
        })
    }

    /// An established connection with ECN.
    pub(super) fn marking() -> Conversation {
        Conversation::with_handshake(TcpHandshake {
            iss: SequenceNumber(10_000),
            irs: SequenceNumber(500_000),
            mss: MSS,
            peer_window_shift: Some(0),
            round_trip: Some(Micros::from_millis(10)),
            timestamps: None,
            sack_permitted: true,
            ecn: true,
        })
    }

    pub(super) fn with_handshake(handshake: TcpHandshake) -> Conversation {
        Conversation::with_window(handshake, 64_000)
    }

    /// As [`Conversation::with_handshake`]. `window`: the peer's first window.
    pub(super) fn with_window(handshake: TcpHandshake, window: u32) -> Conversation {
        let now = Instant(1_000_000_000);
        let mut conversation =
            Conversation::with_tcb(Tcb::accepted(now, &handshake), now, handshake.iss);
        conversation.irs = handshake.irs;
        conversation.peer_shift = handshake.peer_window_shift.unwrap_or(0);
        conversation.peer(&format!(". 1:1 ack 1 win {window}"));
        conversation.silence();
        conversation
    }

    /// An outgoing connection. Its SYN has not been compared yet.
    pub(super) fn connecting() -> Conversation {
        let now = Instant(1_000_000_000);
        let iss = SequenceNumber(10_000);
        let beginning = InitialNumbers { iss, timestamp_offset: 0u32.wrapping_sub(1_000_000) };
        let mut conversation = Conversation::with_tcb(Tcb::connect(now, beginning, MSS), now, iss);
        conversation.turn();
        conversation
    }

    fn with_tcb(tcb: Tcb, now: Instant, iss: SequenceNumber) -> Conversation {
        Conversation {
            tcb,
            pools: Pools::new(SIZES),
            now,
            session: Session::TakesAll,
            limits: SendLimits { segmentation_bytes: None, local_mss: MSS },
            card_room: usize::MAX,
            actions: Actions::default(),
            iss,
            irs: SequenceNumber(500_000),
            out: VecDeque::new(),
            given: 0,
            queued: 0,
            peer_shift: 0,
        }
    }

    /// A segment arrives from the peer; then the connection may produce output.
    pub(super) fn peer(&mut self, text: &str) -> &mut Self {
        self.peer_quietly(text);
        self.turn();
        self
    }

    /// A segment arrives from the peer, and the connection may not produce output yet.
    pub(super) fn peer_quietly(&mut self, text: &str) -> &mut Self {
        let written = parse(text);
        let control = u32::from(written.flags.has(TcpFlags::SYN));
        let payload = bytes_at(
            written.from.wrapping_sub(1).wrapping_add(control),
            (written.to.wrapping_sub(written.from)) as usize,
        );
        let segment = SegmentRepr {
            sequence: self.irs + written.from,
            acknowledgment: written.ack.map_or(SequenceNumber(0), |ack| self.iss + ack),
            flags: written.flags,
            window: (written.win.unwrap_or(64_000) >> self.peer_shift) as u16,
            congestion_experienced: written.marked,
            options: self.with_our_numbers(written.options()),
            payload: &payload,
        };
        self.actions = self.tcb.segment_arrived(self.now, &segment, &mut self.pools);
        let data = payload[self.actions.data.clone()].to_vec();
        self.deliver(&data);
        self
    }

    /// Converts the peer's SACK blocks, which are written relative to our numbers.
    fn with_our_numbers(&self, mut options: Options) -> Options {
        let blocks = core::mem::take(&mut options.sack);
        for block in blocks.as_slice() {
            options
                .sack
                .push(SackBlock { start: self.iss + block.start.0, end: self.iss + block.end.0 });
        }
        options
    }

    fn deliver(&mut self, data: &[u8]) {
        assert!(
            data.is_empty() || self.tcb.waiting().is_empty(),
            "new bytes do not overtake waiting ones"
        );
        match self.session {
            Session::TakesAll => {
                self.check_given(data);
                self.take(usize::MAX);
            }
            Session::LeavesAll => self.tcb.keep(data, &mut self.pools),
        }
        self.tcb.assert_invariants();
    }

    fn check_given(&mut self, data: &[u8]) {
        assert!(
            data == bytes_at(self.given, data.len()),
            "the stream is delivered as it was sent, from {}",
            self.given
        );
        self.given += data.len() as u32;
    }

    /// The session consumes up to `count` of the waiting bytes.
    pub(super) fn take(&mut self, count: usize) -> &mut Self {
        let mut left = count;
        while left > 0 && !self.tcb.waiting().is_empty() {
            let data = self.tcb.waiting().to_vec();
            let now = data.len().min(left);
            self.check_given(&data[..now]);
            self.tcb.consumed(now, &mut self.pools);
            left -= now;
        }
        self.tcb.assert_invariants();
        self
    }

    /// The session queues the next `count` bytes of its stream; then the connection may produce
    /// output.
    pub(super) fn write(&mut self, count: usize) -> &mut Self {
        let bytes = bytes_at(self.queued, count);
        let taken = self.tcb.send(self.now, &bytes, &mut self.pools);
        self.queued += taken as u32;
        assert!(taken == count, "all {count} bytes fit");
        self.turn();
        self
    }

    pub(super) fn close(&mut self) -> &mut Self {
        self.tcb.close(&mut self.pools);
        self.turn();
        self
    }

    pub(super) fn abort(&mut self) -> &mut Self {
        self.tcb.abort(&mut self.pools);
        self.turn();
        self
    }

    /// The end of a turn: the connection may produce output.
    pub(super) fn turn(&mut self) -> &mut Self {
        self.rests_only_when_all_is_done();
        let Conversation { tcb, pools, now, limits, out, card_room, .. } = self;
        if !tcb.wants_output() {
            return self;
        }
        let tcb_mss = tcb.mss();
        let result =
            tcb.output(*now, *limits, pools, &mut |segment: &SegmentToSend, pieces: &[Piece]| {
                if *card_room == 0 {
                    return Err(CardFull);
                }
                *card_room -= 1;
                let payload: Vec<u8> =
                    pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect();
                assert_eq!(payload.len(), segment.payload_bytes);
                assert_eq!(
                    segment.segment_bytes.is_some(),
                    payload.len() > usize::from(MSS.max(tcb_mss))
                );
                out.push_back(Sent { segment: *segment, payload });
                Ok(())
            });
        assert!(result.is_err() || !tcb.wants_output(), "output sends all that may be sent");
        tcb.assert_invariants();
        self
    }

    /// A connection at rest has no output, has not ended, and will be called before its deadline.
    fn rests_only_when_all_is_done(&self) {
        let Conversation { tcb, now, .. } = self;
        if tcb.is_at_rest(*now, Instant::START) {
            assert!(!tcb.wants_output() && tcb.ended().is_none());
        }
        if let Some(deadline) = tcb.deadline(*now) {
            assert!(!tcb.is_at_rest(*now, deadline + Micros(1)));
        }
    }

    /// Lets time pass, and handles every deadline in that time.
    pub(super) fn wait(&mut self, span_ms: u64) -> &mut Self {
        let end = self.now + Micros::from_millis(span_ms);
        let mut actions = Actions::default();
        while let Some(deadline) = self.tcb.deadline(self.now).filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            let more = self.tcb.deadline_expired(self.now, &mut self.pools);
            actions.send_room |= more.send_room;
            actions.closed = actions.closed.or(more.closed);
            self.tcb.assert_invariants();
            self.turn();
            assert!(
                self.tcb.deadline(self.now).is_none_or(|next| next > self.now),
                "an expired deadline is dealt with"
            );
        }
        self.now = end;
        self.actions = actions;
        self
    }

    /// Compares the next sent segment. Window and options are compared only if they are written.
    pub(super) fn we(&mut self, text: &str) -> &mut Self {
        let written = parse(text);
        let sent =
            self.out.pop_front().unwrap_or_else(|| panic!("expected `{text}`, nothing was sent"));
        let shown = self.tell(&sent);
        let flags = sent.segment.flags;
        let from = sent.segment.sequence.since(self.iss);
        assert_eq!(flags, written.flags, "expected `{text}`, sent `{shown}`");
        if !flags.has(TcpFlags::RST) || written.flags.has(TcpFlags::ACK) {
            let ack = flags.has(TcpFlags::ACK).then(|| sent.segment.acknowledgment.since(self.irs));
            assert_eq!(ack, written.ack, "expected `{text}`, sent `{shown}`");
        }
        assert_eq!(
            (from, sent.payload.len() as u32),
            (written.from, written.to.wrapping_sub(written.from)),
            "expected `{text}`, sent `{shown}`"
        );
        let stream_place = from.wrapping_sub(1);
        assert!(
            sent.payload == bytes_at(stream_place, sent.payload.len()),
            "the bytes of `{shown}` are those queued"
        );
        if let Some(win) = written.win {
            assert_eq!(
                u32::from(sent.segment.window),
                win,
                "window: expected `{text}`, sent `{shown}`"
            );
        }
        if written.mss.is_some() || written.wscale.is_some() {
            let options = sent.segment.options;
            assert_eq!(
                (options.mss, options.window_scale),
                (written.mss, written.wscale),
                "`{text}`, sent `{shown}`"
            );
        }
        if !written.sacks.is_empty() || written.sack_permitted || written.no_sacks {
            let options = sent.segment.options;
            let blocks = options.sack.as_slice().iter();
            let relative = |number: SequenceNumber| SequenceNumber(number.since(self.irs));
            let blocks: Vec<SackBlock> = blocks
                .map(|block| SackBlock { start: relative(block.start), end: relative(block.end) })
                .collect();
            assert_eq!(
                (blocks, options.sack_permitted),
                (written.sacks.clone(), written.sack_permitted),
                "`{text}`"
            );
        }
        if let Some(may_be_marked) = written.may_be_marked {
            assert_eq!(sent.segment.may_be_marked, may_be_marked, "`{text}`");
        }
        if written.val.is_some() || written.bare {
            let timestamps = written.options().timestamps;
            assert_eq!(
                sent.segment.options.timestamps, timestamps,
                "expected `{text}`, sent `{shown}`"
            );
        }
        self
    }

    /// Drops and counts the sent segments.
    pub(super) fn we_whatever(&mut self) -> usize {
        self.out.drain(..).count()
    }

    /// The header of the next sent segment.
    pub(super) fn next_sent(&mut self) -> Option<SegmentToSend> {
        self.out.pop_front().map(|sent| sent.segment)
    }

    /// Asserts that nothing more was sent.
    pub(super) fn silence(&mut self) -> &mut Self {
        if let Some(sent) = self.out.pop_front() {
            panic!("expected nothing, sent `{}`", self.tell(&sent));
        }
        self
    }

    fn tell(&self, sent: &Sent) -> String {
        let from = sent.segment.sequence.since(self.iss);
        let to = from.wrapping_add(sent.payload.len() as u32);
        let ack = match sent.segment.flags.has(TcpFlags::ACK) {
            true => format!(" ack {}", sent.segment.acknowledgment.since(self.irs)),
            false => String::new(),
        };
        format!("{:?} {from}:{to}{ack} win {}", sent.segment.flags, sent.segment.window).to_string()
    }

    /// Asserts that the last event closed the connection for this reason.
    pub(super) fn closed(&mut self, reason: CloseReason) -> &mut Self {
        assert_eq!(self.actions.closed, Some(reason));
        self
    }

    /// Asserts that the connection has ended and returned all borrowed buffers.
    pub(super) fn ended(&mut self, ended: &str) {
        match (ended, self.tcb.ended()) {
            ("gone", Some(CloseOutcome::Gone))
            | ("time-wait", Some(CloseOutcome::TimeWait(_)))
            | ("no", None) => {}
            (_, other) => panic!("expected {ended}, ended {other:?}"),
        }
        if ended != "no" {
            self.tcb.release(&mut self.pools);
            self.lent_nothing();
        }
    }

    /// Asserts that the connection holds no queue and no block.
    pub(super) fn lent_nothing(&mut self) {
        self.pools.blocks.collect_retired();
        assert_eq!(self.pools.free_blocks(), SIZES.blocks);
        assert_eq!(self.pools.free_send_queues(), SIZES.send_queues);
        assert_eq!(self.pools.free_receive_queues(), SIZES.receive_queues);
    }

    pub(super) fn state(&self) -> String {
        format!("{:?}", self.tcb.state())
    }
}

#[test]
fn parse_reads_the_notation_of_segments() {
    let written = parse("SP. -1:9 ack 7 win 100 mss 5 wscale 3");
    assert_eq!(written.flags, TcpFlags::SYN.with(TcpFlags::PSH).with(TcpFlags::ACK));
    assert_eq!((written.from, written.to), (u32::MAX, 9));
    assert_eq!(
        (written.ack, written.win, written.mss, written.wscale),
        (Some(7), Some(100), Some(5), Some(3))
    );
    assert_eq!(bytes_at(3, 2), vec![byte_at(3), byte_at(4)]);
}

/// Runs the same test with many initial sequence numbers. They wrap, or pass 2^31, at the first
/// byte or within the first few thousand bytes of a stream.
pub(super) fn everywhere(talk: impl Fn(&mut Conversation)) {
    for offset in [0, 1, 2, 3, 10, 11, 999, 1000, 1001, 1002, 2000, 5000, 10_001, 64_000] {
        for edge in [0u32, 1 << 31] {
            let start = edge.wrapping_sub(offset);
            talk(&mut Conversation::established_at(start, 77));
            talk(&mut Conversation::established_at(77, start));
            talk(&mut Conversation::established_at(start, start));
        }
    }
}
