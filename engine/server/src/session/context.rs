//! What a session is told with: the parts of its core, and the services that sessions use.

use certificates::Certificates;
use connections::Caller;
use inbound::{self, Inbound, SmtpCall};
use outbound::Outbound;
use pop3_server::{self, Pop3, Pop3Call};
use submission::Submission;
use web::{self, HttpCall, Web};

use crate::common::Common;

/// The services of a core.
pub(crate) struct Services {
    pub(crate) inbound: Inbound,
    pub(crate) pop3: Pop3,
    pub(crate) web: Web,
    pub(crate) submission: Submission,
    pub(crate) outbound: Outbound,
    pub(crate) certificates: Certificates,
}

impl Services {
    /// The same with the parts of the core.
    #[inline]
    pub(crate) fn with<'a>(&'a mut self, common: &'a mut Common) -> Context<'a> {
        Context { common, inbound: &mut self.inbound, pop3: &mut self.pop3, web: &mut self.web }
    }
}

/// The parts of the core, and the services.
pub(crate) struct Context<'a> {
    pub(crate) common: &'a mut Common,
    pub(crate) inbound: &'a mut Inbound,
    pub(crate) pop3: &'a mut Pop3,
    pub(crate) web: &'a mut Web,
}

impl Context<'_> {
    /// What an SMTP session acts on.
    #[inline]
    pub(super) fn smtp(&mut self, caller: Caller) -> SmtpCall<'_> {
        let Common { turn, connections, store, directory, logins, signer, names, compute, console, .. } =
            &mut *self.common;
        let turn = *turn;
        let cx = inbound::Context { turn, connections, store, directory, logins, signer, names, compute, console };
        SmtpCall { caller, inbound: self.inbound, cx }
    }

    /// What a POP3 session acts on.
    #[inline]
    pub(super) fn pop3(&mut self, caller: Caller) -> Pop3Call<'_> {
        let Common { turn, connections, store, directory, logins, compute, .. } = &mut *self.common;
        let cx = pop3_server::Context { turn: *turn, connections, store, directory, logins, compute };
        Pop3Call { caller, pop3: self.pop3, cx }
    }

    /// What an HTTP session acts on.
    #[inline]
    pub(super) fn http(&mut self, caller: Caller) -> HttpCall<'_> {
        let Common { turn, connections, store, directory, logins, compute, console, memory, .. } = &mut *self.common;
        let turn = *turn;
        let cx = web::Context { turn, connections, store, directory, logins, compute, console, memory };
        HttpCall { caller, web: self.web, cx }
    }
}
