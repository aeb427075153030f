//! The context of a session.

use connections::Caller;
use inbound::{self, Inbound, SmtpCall};
use pop3_server::{self, Pop3, Pop3Call};
use resolver::NameLookups;
use web::{self, HttpCall, Web};

use crate::parts::Parts;

/// The parts of the core, and the services that sessions use.
pub(crate) struct Context<'a> {
    pub(crate) parts: &'a mut Parts,
    pub(crate) inbound: &'a mut Inbound,
    pub(crate) pop3: &'a mut Pop3,
    pub(crate) web: &'a mut Web,
    pub(crate) names: &'a mut NameLookups,
}

impl Context<'_> {
    /// The context of an SMTP session.
    #[inline]
    pub(super) fn smtp(&mut self, caller: Caller) -> SmtpCall<'_> {
        let Parts { turn, connections, store, directory, logins, signer, compute, console, .. } =
            &mut *self.parts;
        let (turn, names) = (*turn, &mut *self.names);
        let cx = inbound::SmtpContext {
            turn,
            connections,
            store,
            directory,
            logins,
            signer,
            names,
            compute,
            console,
        };
        SmtpCall { caller, inbound: self.inbound, cx }
    }

    /// The context of a POP3 session.
    #[inline]
    pub(super) fn pop3(&mut self, caller: Caller) -> Pop3Call<'_> {
        let Parts { turn, connections, store, directory, logins, compute, .. } = &mut *self.parts;
        let cx = pop3_server::Pop3Context {
            turn: *turn,
            connections,
            store,
            directory,
            logins,
            compute,
        };
        Pop3Call { caller, pop3: self.pop3, cx }
    }

    /// The context of an HTTP session.
    #[inline]
    pub(super) fn http(&mut self, caller: Caller) -> HttpCall<'_> {
        let Parts { turn, connections, store, directory, logins, compute, console, memory, .. } =
            &mut *self.parts;
        let turn = *turn;
        let cx = web::WebContext {
            turn,
            connections,
            store,
            directory,
            logins,
            compute,
            console,
            memory,
        };
        HttpCall { caller, web: self.web, cx }
    }
}
