//! Questions to the owner of an account or fact, each a type of its own.
//!
//! A question, its reply and what the owner does for it stand in one file. Here is the list of
//! them: what carries questions between cores knows no more. A new one is a file and a line of the
//! list.

use crate::ask::{GiveBack, Question};
use crate::calling::{CallNews, MayCall};
use crate::greylisting::MayCome;
use crate::opening::OpenMaildrop;
use crate::owned::Owned;
use crate::sending::MaySend;
use crate::usage::UsageOf;

macro_rules! questions {
    ($($(#[$of:meta])* $name:ident($question:ty),)+) => {
        /// A question on its way to the owner.
        pub enum Asked {
            $($(#[$of])* $name($question),)+
        }

        /// A reply on its way back.
        pub enum Reply {
            $($(#[$of])* $name(<$question as Question>::Reply),)+
        }

        $(impl From<$question> for Asked {
            fn from(question: $question) -> Asked {
                Asked::$name(question)
            }
        })+

        impl Asked {
            pub(crate) fn answer(self, owned: &mut Owned) -> Reply {
                match self {
                    $(Asked::$name(question) => Reply::$name(question.answer(owned)),)+
                }
            }
        }

        impl Reply {
            /// Nothing waits for it any more: what of it goes home.
            pub(crate) fn unwanted(self) -> Option<GiveBack> {
                match self {
                    $(Reply::$name(reply) => <$question>::unwanted(reply),)+
                }
            }
        }
    };
}

questions! {
    /// How much an account has.
    Usage(UsageOf),
    /// Whether an account may send a message.
    MaySend(MaySend),
    /// A maildrop is opened.
    Maildrop(OpenMaildrop),
    /// Whether a message may come in, or is deferred.
    MayCome(MayCome),
    /// Whether one more connection may be made to a destination of mail.
    MayCall(MayCall),
    /// Something was found out about such a destination.
    CallNews(CallNews),
}
