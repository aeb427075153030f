//! Questions to the owner of an account, each a type of its own.
//!
//! A question, its reply and what the owner does for it stand in one file. Here is the list of them:
//! what carries questions between cores knows no more. A new one is a file and a line of the list.

use store::AccountId;
use tasks::Continuation;

use crate::allowances::MaySend;
use crate::maildrop::OpenMaildrop;

use super::usage::UsageOf;
use super::{Archive, Own, Request};

/// A question to the owner of an account.
pub(crate) trait Question: Sized {
    /// The owner's reply.
    type Reply;

    /// The account.
    fn account(&self) -> AccountId;

    /// What the owner does, and replies.
    fn answer(self, own: &mut Own) -> Self::Reply;

    /// Nothing waits for the reply any more: what it holds goes home.
    fn unwanted(_reply: Self::Reply, _archive: &mut Archive) {}
}

macro_rules! questions {
    ($($name:ident($question:ty),)+) => {
        /// A question on its way to the owner.
        pub(crate) enum Asked {
            $($name($question),)+
        }

        /// A reply on its way back.
        pub(crate) enum Reply {
            $($name(<$question as Question>::Reply),)+
        }

        $(impl From<$question> for Asked {
            fn from(question: $question) -> Asked {
                Asked::$name(question)
            }
        })+

        impl Asked {
            pub(super) fn answer(self, own: &mut Own) -> Reply {
                match self {
                    $(Asked::$name(question) => Reply::$name(question.answer(own)),)+
                }
            }
        }

        impl Reply {
            /// Nothing waits for it any more.
            pub(crate) fn give_back(self, archive: &mut Archive) {
                match self {
                    $(Reply::$name(reply) => <$question>::unwanted(reply, archive),)+
                }
            }
        }
    };
}

questions! {
    Usage(UsageOf),
    MaySend(MaySend),
    Maildrop(OpenMaildrop),
}

impl Archive {
    /// Asks the owner of an account. `None`: the reply comes later, to the frame that waits `at` this
    /// point.
    pub(crate) fn ask_owner<Q: Question>(&mut self, question: Q, at: Continuation) -> Option<Q::Reply>
    where
        Asked: From<Q>,
    {
        let owner = self.owner(question.account());
        match self.distant_at(owner) {
            None => Some(question.answer(&mut self.own)),
            Some(distant) => {
                distant.ask(owner, Request::Asked(at, question.into()));
                None
            }
        }
    }
}
