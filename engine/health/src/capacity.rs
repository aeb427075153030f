//! How full the disk and the index are. The console reports 80 %, 95 %, full, and each recovery.
//!
//! Invariant: a level is left only when the use is well below it. So a use that rises and falls
//! around a limit causes one line.

use core::fmt;

use store::{Capacity, Fill};

/// A level is left when the use is this many percent below it.
const HYSTERESIS: u64 = 5;
/// A full resource has recovered when its use is this many percent lower, or zero.
const RECOVERY: u64 = 2;

/// How full a resource is, as the console has reported it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Level {
    #[default]
    Usual,
    /// 80 % are in use.
    High,
    /// 95 % are in use.
    VeryHigh,
    /// New messages are refused. The value is the use in percent at that time.
    Full(u64),
}

impl Level {
    fn of(fill: Fill) -> Level {
        match fill.percent() {
            percent if fill.is_full => Level::Full(percent),
            95.. => Level::VeryHigh,
            80.. => Level::High,
            _ => Level::Usual,
        }
    }

    /// Whether the use is so far below this level that the level has ended.
    fn has_ended(self, fill: Fill) -> bool {
        let is_below = |limit: u64| fill.percent() + HYSTERESIS <= limit;
        match self {
            Level::Usual => false,
            Level::High => is_below(80),
            Level::VeryHigh => is_below(95),
            Level::Full(percent) => {
                !fill.is_full && fill.percent() + RECOVERY.min(percent) <= percent
            }
        }
    }

    /// The new level. `None`: the level has not changed.
    fn after(self, fill: Fill) -> Option<Level> {
        let now = Level::of(fill);
        let is_full_still = matches!((self, now), (Level::Full(_), Level::Full(_)));
        ((now > self && !is_full_still) || self.has_ended(fill)).then_some(now)
    }
}

/// The resources with a limit, and the levels that the console has reported.
#[derive(Default)]
pub(crate) struct CapacityWatch {
    last: Option<Capacity>,
    disk: Level,
    index: Level,
}

impl CapacityWatch {
    /// Reports the limits at the first call, and each change of a level.
    pub(crate) fn examine(
        &mut self,
        capacity: Capacity,
        print: &mut dyn FnMut(fmt::Arguments<'_>),
    ) {
        if self.last == Some(capacity) {
            return;
        }
        let Capacity { disk, index } = capacity;
        if self.last.replace(capacity).is_none() {
            let (limit, used) = (Capacity::messages(index.limit), index.percent());
            print(format_args!("disk: {} % used", disk.percent()));
            print(format_args!("index: up to {} messages, {used} % used", Grouped(limit)));
        }
        if let Some(level) = self.disk.after(disk) {
            report(
                "disk",
                (self.disk, level),
                disk,
                "delete messages, or use a larger disk",
                print,
            );
            self.disk = level;
        }
        if let Some(level) = self.index.after(index) {
            let advice = "delete messages, or give the machine more memory";
            report("index", (self.index, level), index, advice, print);
            self.index = level;
        }
    }
}

fn report(
    name: &str,
    (before, now): (Level, Level),
    fill: Fill,
    advice: &str,
    print: &mut dyn FnMut(fmt::Arguments<'_>),
) {
    let used = fill.percent();
    match (before, now) {
        (_, Level::Full(_)) => {
            print(format_args!("{name}: FULL: messages are refused; {advice}"));
        }
        (Level::Full(_), _) => {
            print(format_args!("{name}: {used} % used; messages are accepted again"));
        }
        (before, now) if now < before => {
            print(format_args!("{name}: only {used} % used now"));
        }
        _ => print(format_args!("{name}: {used} % used; {advice} before it is full")),
    }
}

/// A number with a comma after each three digits.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1_000, self.0 % 1_000) {
            (0, rest) => write!(out, "{rest}"),
            (above, rest) => write!(out, "{},{rest:03}", Grouped(above)),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use super::*;

    /// The lines for these uses of a disk, in percent. A negative number means that the disk is
    /// full.
    fn lines(uses: &[i64]) -> Vec<String> {
        let mut watch = CapacityWatch::default();
        let mut lines = Vec::new();
        let index = Fill { used: 0, limit: 64_896_000, is_full: false };
        for percent in uses {
            let used = percent.unsigned_abs();
            let disk = Fill { used, limit: 100, is_full: *percent < 0 };
            watch.examine(Capacity { disk, index }, &mut |line| lines.push(line.to_string()));
        }
        lines
    }

    #[test]
    fn capacity_limits_are_named_at_the_start() {
        assert_eq!(
            lines(&[12, 12, 13]),
            ["disk: 12 % used", "index: up to 507,000 messages, 0 % used"]
        );
        assert_eq!(
            [7, 999, 1_000, 1_234_007].map(|number| Grouped(number).to_string()),
            ["7", "999", "1,000", "1,234,007"]
        );
    }

    #[test]
    fn each_capacity_level_and_its_end_are_reported_once() {
        let advice = "delete messages, or use a larger disk";
        let early = |used| alloc::format!("disk: {used} % used; {advice} before it is full");
        let full = alloc::format!("disk: FULL: messages are refused; {advice}");
        let uses = [79, 80, 79, 81, 94, 95, 94, 96, 98, -99, -99, 98, -99, 97, 94, 90, 80, 75, 74];
        assert_eq!(
            lines(&uses)[2..],
            [
                early(80),
                early(95),
                full,
                "disk: 97 % used; messages are accepted again".into(),
                "disk: only 90 % used now".into(),
                "disk: only 75 % used now".into(),
            ]
        );
    }

    #[test]
    fn a_jump_over_several_levels_is_one_line() {
        assert_eq!(lines(&[10, -90, 40]).len(), 4);
        assert_eq!(lines(&[96]).len(), 3);
    }

    #[test]
    fn a_full_disk_at_a_low_use_ends_too() {
        for percent in 1..4 {
            assert_eq!(lines(&[-percent, 0, 80])[3..].len(), 2, "{percent}");
        }
    }
}
