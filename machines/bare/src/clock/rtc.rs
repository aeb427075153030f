//! The real-time clock chip (MC146818 and successors): the time of day in whole seconds, read as
//! UTC in the years 2000 to 2099.

use crate::cpu::Port;
use machine::UnixTime;

/// The chip's registers, in the order of [`Registers::fields`].
const FIELDS: [u8; 6] = [0x00, 0x02, 0x04, 0x07, 0x08, 0x09];
const STATUS_A: u8 = 0x0A;
const STATUS_B: u8 = 0x0B;

const UPDATE_IN_PROGRESS: u8 = 0x80;
const BINARY: u8 = 0x04;
const HOURS_24: u8 = 0x02;
const AFTERNOON: u8 = 0x80;

/// The time of day. `None` if the chip is missing, or is about to change its registers. A caller
/// that needs the time asks again a little later.
pub(crate) fn read() -> Option<UnixTime> {
    // SAFETY: 1. the chip accesses no memory; 2. no code relies on it. The top bit of the index,
    // which masks NMIs, stays clear.
    let (index, data) = unsafe { (Port::new(0x70), Port::new(0x71)) };
    let register = |number| {
        index.write8(number);
        data.read8()
    };
    // The bit is set 244 us before the chip changes its registers. The readings below take less
    // time.
    if register(STATUS_A) & UPDATE_IN_PROGRESS != 0 {
        return None;
    }
    Registers { fields: FIELDS.map(register), status_b: register(STATUS_B) }.decode()
}

/// The contents of the chip's registers.
struct Registers {
    /// Second, minute, hour, day, month, year.
    fields: [u8; 6],
    status_b: u8,
}

impl Registers {
    fn decode(&self) -> Option<UnixTime> {
        let number = |field: u8| {
            if self.status_b & BINARY != 0 {
                u64::from(field)
            } else {
                u64::from(field >> 4) * 10 + u64::from(field & 0xF)
            }
        };
        let [second, minute, hour, day, month, year] = self.fields;
        let hour = match (self.status_b & HOURS_24 != 0, number(hour & !AFTERNOON)) {
            (true, _) => number(hour),
            (false, hour_12) => hour_12 % 12 + if hour & AFTERNOON != 0 { 12 } else { 0 },
        };
        let [second, minute, day, month, year] = [second, minute, day, month, year].map(number);
        let is_sane = second < 60
            && minute < 60
            && hour < 24
            && (1..=31).contains(&day)
            && (1..=12).contains(&month)
            && year < 100;
        let days = days_since_1970(2000 + year, month, day);
        is_sane.then(|| UnixTime::from_seconds(((days * 24 + hour) * 60 + minute) * 60 + second))
    }
}

/// The number of days from 1 January 1970 to a day of the Gregorian calendar. The years of the
/// calculation begin in March, so that the leap day is their last day.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let days_before_year = 365 * year + year / 4 - year / 100 + year / 400;
    let days_before_month = (153 * month + 2) / 5;
    (days_before_year + days_before_month + day).saturating_sub(719_469)
}

#[cfg(test)]
mod tests;
