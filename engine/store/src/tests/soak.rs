//! One million power cuts, in 20 parts of 50,000: `./barepost test cuts-long`. Each part has its
//! own seeds.

extern crate std;

use super::model::live;

const LIVES: u64 = 1_250;
const CUTS: u32 = 40;

/// Half of the lives have a disk with free space, the other half a nearly full disk.
fn soak(part: u64) {
    let mut cuts = 0;
    for life in 0..LIVES {
        let seed = 1_000_000 + part * LIVES + life;
        let bytes = if life % 2 == 0 { 4 << 20 } else { 3 << 19 };
        let accounts = 1 + life as usize % 4;
        let result = std::panic::catch_unwind(|| live(seed, bytes, accounts, CUTS));
        let Ok((life_cuts, _)) = result else { panic!("life {life} of part {part} failed") };
        cuts += u64::from(life_cuts);
    }
    assert_eq!(cuts, LIVES * u64::from(CUTS));
}

macro_rules! parts {
    ($($name:ident $part:literal,)*) => {
        $(
            #[test]
            #[ignore = "one of the parts of cuts-long"]
            fn $name() {
                soak($part);
            }
        )*
    };
}

parts! {
    fifty_thousand_power_cuts_part_01 1,
    fifty_thousand_power_cuts_part_02 2,
    fifty_thousand_power_cuts_part_03 3,
    fifty_thousand_power_cuts_part_04 4,
    fifty_thousand_power_cuts_part_05 5,
    fifty_thousand_power_cuts_part_06 6,
    fifty_thousand_power_cuts_part_07 7,
    fifty_thousand_power_cuts_part_08 8,
    fifty_thousand_power_cuts_part_09 9,
    fifty_thousand_power_cuts_part_10 10,
    fifty_thousand_power_cuts_part_11 11,
    fifty_thousand_power_cuts_part_12 12,
    fifty_thousand_power_cuts_part_13 13,
    fifty_thousand_power_cuts_part_14 14,
    fifty_thousand_power_cuts_part_15 15,
    fifty_thousand_power_cuts_part_16 16,
    fifty_thousand_power_cuts_part_17 17,
    fifty_thousand_power_cuts_part_18 18,
    fifty_thousand_power_cuts_part_19 19,
    fifty_thousand_power_cuts_part_20 20,
}
