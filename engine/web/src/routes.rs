//! Webmail requests on the core of their connection: admits them, and sends them to the core of the
//! account.
//!
//! The crate `webmail` decides (see `door`); this module acts on it.

use alloc::string::String;
use alloc::vec::Vec;

use connections::Channel;
use http::Question;
use sasl::{Credentials, Proof};
use webmail::{Door, Most, Request};

use super::context::HttpCall;
use super::errand::{Errand, Purpose};

impl Errand {
    /// A webmail request has come. `None`: another core has it and will reply.
    pub(super) fn webmail(question: &Question<'_>, call: &mut HttpCall<'_>) -> Option<Errand> {
        let host = call.name_over_tls(question.host);
        let most = Most {
            form_bytes: call.web.bodies_max,
            message_octets: smtp::Settings::default().message_bytes_max,
        };
        let asked = webmail::asked(question, host, call.caller.channel == Channel::Tls, most);
        Errand::of(asked, call)
    }

    /// A form has come.
    pub(super) fn form(
        question: &Question<'_>,
        body: Vec<u8>,
        call: &mut HttpCall<'_>,
    ) -> Option<Errand> {
        let host = call.name_over_tls(question.host);
        let asked = webmail::form_arrived(question, body, host);
        Errand::of(asked, call)
    }

    fn of(asked: Result<Request, Door>, call: &mut HttpCall<'_>) -> Option<Errand> {
        let frame = call.caller.connection.0;
        let door = match asked {
            Ok(request) => {
                call.web.ask(frame, request);
                return None;
            }
            Err(door) => door,
        };
        let errand = match door {
            Door::Reply(reply) => Errand::Turn(reply),
            Door::Admit(bytes) => Errand::Admission(bytes),
            Door::Knock { request, bytes } => {
                call.web.ask(frame, *request);
                return Some(Errand::Knock { bytes });
            }
            Door::Letter { request, bytes, memory } => {
                call.web.ask(frame, *request);
                return Some(Errand::Letter { bytes, memory });
            }
            Door::LogIn { name, password, next, program, kept } => {
                let credentials = Credentials { name: &name, proof: Proof::Password(&password) };
                let attempt = call.log_in(credentials);
                return Some(Errand::Login {
                    attempt,
                    purpose: Purpose::Webmail { name, program, next, kept },
                });
            }
            Door::SetPassword { account, old, new } => {
                let name = call
                    .cx
                    .store
                    .account(account)
                    .map_or_else(String::new, |known| known.address.into());
                let credentials = Credentials { name: &name, proof: Proof::Password(&old) };
                let attempt = call.log_in(credentials);
                return Some(Errand::Login { attempt, purpose: Purpose::Password(new) });
            }
        };
        call.cx.connections.resume(frame);
        Some(errand)
    }
}
