//! The list of questions to the owner of an account or fact. Each question has its own type.
//!
//! One file has a question, its reply and the owner's work for it. This file lists all questions.
//! The code that passes questions between cores knows only this list. A new question needs a file,
//! and a line in the list.

use crate::ask::{GiveBack, OwnerQuery};
use crate::destination::{DestinationReport, MayConnect};
use crate::greylisting::GreylistQuery;
use crate::opening::OpenMaildrop;
use crate::owned::Owned;
use crate::sending::MaySend;
use crate::usage::UsageOf;

macro_rules! questions {
    ($($(#[$of:meta])* $name:ident($question:ty),)+) => {
        /// A question on its way to the owner.
        pub enum OwnerQuestion {
            $($(#[$of])* $name($question),)+
        }

        /// A reply on its way back.
        pub enum Reply {
            $($(#[$of])* $name(<$question as OwnerQuery>::Reply),)+
        }

        $(impl From<$question> for OwnerQuestion {
            fn from(question: $question) -> OwnerQuestion {
                OwnerQuestion::$name(question)
            }
        })+

        impl OwnerQuestion {
            pub(crate) fn answer(self, owned: &mut Owned) -> Reply {
                match self {
                    $(OwnerQuestion::$name(question) => Reply::$name(question.answer(owned)),)+
                }
            }
        }

        impl Reply {
            /// Handles a reply after its frame has ended. Returns the resource that must be given
            /// back, if any.
            pub(crate) fn unwanted(self) -> Option<GiveBack> {
                match self {
                    $(Reply::$name(reply) => <$question>::unwanted(reply),)+
                }
            }
        }
    };
}

questions! {
    /// The usage of an account.
    Usage(UsageOf),
    /// Whether an account may send a message.
    MaySend(MaySend),
    /// Opens a maildrop.
    Maildrop(OpenMaildrop),
    /// Whether a message is accepted, or deferred.
    GreylistQuery(GreylistQuery),
    /// Whether one more connection may be made to a destination of mail.
    MayConnect(MayConnect),
    /// Reports an event at a destination of mail.
    DestinationReport(DestinationReport),
}
