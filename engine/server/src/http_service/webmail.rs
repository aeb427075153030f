//! The webmail's requests on the core of their connection: let in, sent to where the mail is, and answered.
//!
//! What a request comes to says the door (crate `webmail`); here that is done. A form's bytes are counted from when its sender is let in until his answer is here,
//! and an answer's until the client has them.

use alloc::string::String;
use alloc::vec::Vec;

use connections::{Caller, Channel};
use http::{Admission, Question};
use sasl::{Credentials, Proof};
use webmail::{Door, Most};

use crate::clerks::Told;
use crate::common::Common;

use super::asking::{Errand, Purpose};
use super::{Conversation, host_over_tls};

impl Errand {
    /// Something of the webmail was asked. `None`: it waits for whom it was sent to.
    pub(super) fn webmail(question: &Question<'_>, caller: Caller, common: &mut Common) -> Option<Errand> {
        let host = host_over_tls(question.host, common);
        let most = Most { form_bytes: common.bodies_max, message_octets: smtp::Settings::default().message_bytes_max };
        let door = webmail::asked(question, host, caller.channel == Channel::Tls, most);
        Errand::at(door, caller, common)
    }

    /// A form is there.
    pub(super) fn form(question: &Question<'_>, body: Vec<u8>, caller: Caller, common: &mut Common) -> Option<Errand> {
        let host = host_over_tls(question.host, common);
        let door = webmail::form_arrived(question, body, host);
        Errand::at(door, caller, common)
    }

    fn at(door: Door, caller: Caller, common: &mut Common) -> Option<Errand> {
        let frame = caller.connection.0;
        let errand = match door {
            Door::Reply(reply) => Errand::Turn(reply),
            Door::Admit(bytes) => Errand::Admission(bytes),
            Door::Knock { account, visit, bytes } => {
                common.visit(account, frame, visit);
                return Some(Errand::Knock { bytes });
            }
            Door::Letter { account, visit, bytes, memory } => {
                common.visit(account, frame, visit);
                return Some(Errand::Letter { bytes, memory });
            }
            Door::Visit(account, visit) => {
                common.visit(account, frame, visit);
                return None;
            }
            Door::LogIn { name, password, next, program, kept } => {
                let credentials = Credentials { name: &name, proof: Proof::Password(&password) };
                let (logins, mut cx) = common.logins();
                let attempt = logins.begin(credentials, caller, &mut cx);
                return Some(Errand::Login { attempt, purpose: Purpose::Webmail { name, program, next, kept } });
            }
            Door::SetPassword { account, old, new } => {
                let name = common.store.account(account).map_or_else(String::new, |known| known.address.into());
                let credentials = Credentials { name: &name, proof: Proof::Password(&old) };
                let (logins, mut cx) = common.logins();
                let attempt = logins.begin(credentials, caller, &mut cx);
                return Some(Errand::Login { attempt, purpose: Purpose::Password(account, new) });
            }
        };
        common.connections.resume(frame);
        Some(errand)
    }
}

impl Conversation {
    /// Those have answered whom a request was sent to.
    pub(crate) fn visit_answered(&mut self, told: Told, caller: Caller, common: &mut Common) {
        self.errand_answered(told, caller, common);
        self.settle(caller, common);
    }

    fn errand_answered(&mut self, told: Told, caller: Caller, common: &mut Common) {
        match told {
            Told::More(number, bytes) => return self.fed(number, &bytes, caller, common),
            Told::NoMore(number, end) => {
                return self.with(caller, common, |session, hands| session.fed_up(number, end, hands));
            }
            Told::Taken(number) => {
                return self.with(caller, common, |session, hands| session.piece_taken(number, hands));
            }
            Told::Reply(_) | Told::Admitted | Told::Awaited(_) | Told::Stranger => {}
        }
        match (told, self.errand.take().map(|errand| *errand)) {
            (Told::Reply(reply), _) => self.replied(reply, caller, common),
            (Told::Admitted, Some(Errand::Knock { bytes })) => self.admit(Admission::whole(bytes), caller, common),
            (Told::Awaited(number), Some(Errand::Letter { bytes, memory })) => {
                self.admit(Admission { bytes, memory, number: Some(number) }, caller, common);
            }
            (Told::Awaited(number), _) => common.reply_left(number),
            (Told::Stranger, _) => self.replied(webmail::login(), caller, common),
            (Told::Admitted | Told::Taken(_) | Told::More(..) | Told::NoMore(..), _) => {}
        }
    }

    /// There is more of a reply that stays open.
    fn fed(&mut self, number: u64, bytes: &[u8], caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, _| session.fed(number, bytes));
        self.count_held(common);
    }
}
