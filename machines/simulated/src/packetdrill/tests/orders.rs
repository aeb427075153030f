//! Tests that overlapping segments make one stream in any order, and that each segment is
//! acknowledged up to the first gap.

use super::{ESTABLISHED, orders, passes};

/// The first byte of each segment, and the byte after its last. Together the segments cover the
/// bytes 1 to 600.
const SEGMENTS: [(u32, u32); 5] = [(1, 151), (101, 251), (201, 351), (301, 451), (401, 601)];

/// The first byte that has not arrived yet.
fn missing(arrived: &[(u32, u32)]) -> u32 {
    (1..).find(|byte| !arrived.iter().any(|(start, end)| (start..end).contains(&byte))).unwrap()
}

#[test]
fn overlapping_segments_make_one_stream_in_all_120_orders() {
    let all = orders(&SEGMENTS);
    assert_eq!(all.len(), 120);
    for order in all {
        let mut script = ESTABLISHED.to_string();
        let mut before = 1;
        for (index, (start, end)) in order.iter().enumerate() {
            let now = missing(&order[..=index]);
            script.push_str(&format!("+.1 < . {start}:{end}({}) ack 1 win 32000\n", end - start));
            // If there is no gap before or after the segment, its acknowledgment may be delayed.
            let highest = order[..=index].iter().map(|segment| segment.1).max().unwrap();
            let waits = now == highest
                && index > 0
                && missing(&order[..index]) == order[..index].iter().map(|s| s.1).max().unwrap();
            let waits = waits || (index == 0 && now > 1);
            script.push_str(&format!(
                "+{} > . 1:1(0) ack {now} <...>\n",
                if waits { ".04" } else { "0" }
            ));
            assert!(now >= before, "an acknowledgment never goes back");
            before = now;
        }
        script.push_str("+0 read(4, ..., 1000) = 600\n");
        passes(&script);
    }
}

#[test]
fn a_byte_at_a_time_backwards_is_one_stream() {
    let mut script = ESTABLISHED.to_string();
    for byte in (1..=12).rev() {
        let (ack, at) = if byte == 1 { (13, "+0") } else { (1, "+0") };
        script.push_str(&format!(
            "+.1 < . {byte}:{}(1) ack 1 win 32000\n{at} > . 1:1(0) ack {ack} <...>\n",
            byte + 1
        ));
    }
    script.push_str("+0 read(4, ..., 100) = 12\n");
    passes(&script);
}
