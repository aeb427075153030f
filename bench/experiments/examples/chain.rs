//! Runs the given number of calls through the chain, under a program that counts instructions:
//! `valgrind --tool=callgrind target/release/examples/chain 100000`. Two runs with different
//! numbers of calls show the cost of the additional calls.

use experiments::{Chain, Contention, DevicePlace, Ran};

fn main() {
    let calls = std::env::args().nth(1).and_then(|calls| calls.parse().ok()).unwrap_or(0);
    let mut chain = Chain::new(1, 8, Contention::SoftwareQueue, DevicePlace::Apart);
    while chain.counts().done < calls {
        while chain.underway() < 8 && chain.send(0) {}
        let Some((frame, _)) = chain.next_ready() else { return };
        if let Ran::Requested(continuation) = chain.run(frame) {
            chain.completed(continuation);
        }
    }
}
