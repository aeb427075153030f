//! Continuations, and a counter with which a frame waits for several events.

use crate::FrameId;

/// The point at which a frame continues: the subsystem of the frame, and a point in that
/// subsystem's code. The bits from [`EntryPoint::BITS`] on are for requests that carry
/// continuations between cores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryPoint(pub u32);

impl EntryPoint {
    /// The number of bits that a subsystem and a point take together.
    pub const BITS: u32 = 8;
    const POINT_BITS: u32 = 4;

    /// A point of a subsystem. Both numbers are below 16.
    pub const fn new(subsystem: u8, point: u8) -> EntryPoint {
        assert!(subsystem < 16 && point < 16, "a subsystem and a point take four bits each");
        EntryPoint((subsystem as u32) << EntryPoint::POINT_BITS | point as u32)
    }

    /// The subsystem.
    pub const fn subsystem(self) -> u8 {
        ((self.0 >> EntryPoint::POINT_BITS) & 0xf) as u8
    }

    /// The point in the subsystem's code.
    pub const fn point(self) -> u8 {
        (self.0 & 0xf) as u8
    }
}

/// Defines the points at which the frames of a subsystem wait, as an enum with `entry` and `of`.
#[macro_export]
macro_rules! points {
    ($(#[$of_all:meta])* $visibility:vis enum $name:ident of $subsystem:expr;
     $($(#[$of_one:meta])* $point:ident,)+) => {
        $(#[$of_all])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $visibility enum $name { $($(#[$of_one])* $point,)+ }

        impl $name {
            const ALL: &[$name] = &[$($name::$point),+];

            /// The point as an entry.
            $visibility const fn entry(self) -> $crate::EntryPoint {
                $crate::EntryPoint::new($subsystem as u8, self as u8)
            }

            /// The point of this subsystem at `entry`. `None` if the entry belongs to another
            /// subsystem.
            $visibility fn of(entry: $crate::EntryPoint) -> Option<$name> {
                let point = $name::ALL.get(usize::from(entry.point())).copied();
                point.filter(|_| entry.subsystem() == $subsystem as u8)
            }
        }
    };
}

/// The frame to wake, and the point at which it continues. A request carries the continuation, and
/// its completion returns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Continuation {
    /// The frame that waits.
    pub frame: FrameId,
    /// The point at which it waits.
    pub entry: EntryPoint,
}

/// A synchronization counter: it counts the events that a frame waits for. The last event lets the
/// frame continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Countdown {
    outstanding: u32,
}

impl Countdown {
    /// Waits for this many events.
    pub const fn new(events: u32) -> Countdown {
        Countdown { outstanding: events }
    }

    /// Waits for one more event.
    pub fn expect_one_more(&mut self) {
        assert!(self.outstanding < u32::MAX, "a countdown of 2^32 events");
        self.outstanding += 1;
    }

    /// Counts one event. Returns true for the last event. Panics if no event is expected.
    pub fn arrived(&mut self) -> bool {
        assert!(self.outstanding > 0, "an event that is not counted");
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Whether all expected events have arrived.
    pub const fn is_done(self) -> bool {
        self.outstanding == 0
    }
}
