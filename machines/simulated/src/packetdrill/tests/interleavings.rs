//! Tests of handshakes and closes in every order in which their segments can arrive, with some data
//! between them. The tests compute the expected results with simple arithmetic, not with a state
//! machine.

use super::{ESTABLISHED, orders, passes};

/// Whether the peer's two segments have arrived: ten bytes, and the FIN after them.
#[derive(Clone, Copy, Default)]
struct Arrived {
    text: bool,
    fin: bool,
}

impl Arrived {
    /// The sequence number that we expect next.
    fn next(self) -> u32 {
        match (self.text, self.fin) {
            (false, _) => 1,
            (true, false) => 11,
            (true, true) => 12,
        }
    }

    fn has_closed(self) -> bool {
        self.text && self.fin
    }

    /// The script line for our acknowledgment of data or a FIN that has just arrived. `sends`: our
    /// next sequence number. Data that fills no gap may be acknowledged later.
    fn acknowledged(self, sends: u32, is_text: bool) -> String {
        let wait = if is_text && !self.fin { ".04" } else { "0" };
        format!("+{wait} > . {sends}:{sends}(0) ack {} <...>\n", self.next())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Closing {
    WeClose,
    Text,
    Fin,
    /// The peer acknowledges our FIN.
    Acknowledgment,
}

#[test]
fn closes_complete_in_every_segment_order() {
    let mut tried = 0;
    for order in orders(&[Closing::WeClose, Closing::Text, Closing::Fin, Closing::Acknowledgment]) {
        let place = |what| order.iter().position(|event| *event == what);
        if place(Closing::Acknowledgment) < place(Closing::WeClose) {
            continue;
        }
        tried += 1;
        let (mut script, mut arrived) = (ESTABLISHED.to_string(), Arrived::default());
        let (mut sends, mut acknowledged, mut is_first) = (1, 1, false);
        for event in &order {
            match event {
                Closing::WeClose => {
                    is_first = !arrived.has_closed();
                    let next = arrived.next();
                    script.push_str(&format!(
                        "+.01 shutdown(4, SHUT_WR) = 0\n+0 > F. 1:1(0) ack {next} <...>\n"
                    ));
                    sends = 2;
                }
                Closing::Acknowledgment => {
                    let next = if arrived.fin { 12 } else { arrived.next() };
                    script.push_str(&format!("+.01 < . {next}:{next}(0) ack 2 win 32000\n"));
                    acknowledged = 2;
                }
                Closing::Text => {
                    arrived.text = true;
                    script.push_str(&format!("+.01 < . 1:11(10) ack {acknowledged} win 32000\n"));
                    script.push_str(&arrived.acknowledged(sends, true));
                }
                Closing::Fin => {
                    arrived.fin = true;
                    script.push_str(&format!("+.01 < F. 11:11(0) ack {acknowledged} win 32000\n"));
                    script.push_str(&arrived.acknowledged(sends, false));
                }
            }
        }
        // The side that closes first enters TIME-WAIT, or both sides if they close at the same
        // time.
        let remembered = u32::from(is_first);
        script.push_str(&format!("+0 `netstat | grep -c TIME_WAIT | grep {remembered}`\n"));
        script.push_str("+0 < . 12:12(0) ack 2 win 32000\n");
        if !is_first {
            script.push_str("+0 > R 2:2(0)\n");
        }
        passes(&script);
    }
    assert_eq!(tried, 12);
}

#[derive(Clone, Copy, PartialEq)]
enum Opening {
    /// The peer's SYN, retransmitted.
    Syn,
    Acknowledgment,
    Text,
    Fin,
}

#[test]
fn handshakes_complete_in_every_segment_order() {
    let begin = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                 +0 < S 0:0(0) win 32000 <mss 1000>\n+0 > S. 0:0(0) ack 1 win 65535 <mss 1460>\n";
    for order in orders(&[Opening::Syn, Opening::Acknowledgment, Opening::Text, Opening::Fin]) {
        let (mut script, mut arrived, mut is_open) = (begin.to_string(), Arrived::default(), false);
        for event in order {
            match event {
                Opening::Syn if !is_open => {
                    script.push_str("+.6 < S 0:0(0) win 32000 <mss 1000>\n+0 > S. 0:0(0) ack 1 win 65535 <mss 1460>\n");
                }
                Opening::Syn => {
                    let next = arrived.next();
                    script.push_str(&format!(
                        "+.6 < S 0:0(0) win 32000 <mss 1000>\n+0 > . 1:1(0) ack {next} <...>\n"
                    ));
                }
                Opening::Acknowledgment => {
                    script.push_str("+.6 < . 1:1(0) ack 1 win 32000\n");
                    if arrived.text {
                        // The segment is old, so it is acknowledged again.
                        script.push_str(&format!("+0 > . 1:1(0) ack {} <...>\n", arrived.next()));
                    }
                }
                Opening::Text => {
                    arrived.text = true;
                    script.push_str("+.6 < . 1:11(10) ack 1 win 32000\n");
                    script.push_str(&arrived.acknowledged(1, true));
                }
                Opening::Fin => {
                    arrived.fin = true;
                    script.push_str("+.6 < F. 11:11(0) ack 1 win 32000\n");
                    script.push_str(&arrived.acknowledged(1, false));
                }
            }
            is_open |= event != Opening::Syn;
        }
        script.push_str(
            "+0 accept(3, ..., ...) = 4\n+0 read(4, ..., 100) = 10\n+0 read(4, ..., 100) = 0\n",
        );
        script.push_str(
            "+0 close(4) = 0\n+0 > F. 1:1(0) ack 12 <...>\n+0 < . 12:12(0) ack 2 win 32000\n",
        );
        passes(&script);
    }
}
