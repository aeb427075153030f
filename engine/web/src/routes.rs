//! Webmail requests on the core of their connection. This module admits them, and sends them to the
//! core of the account.
//!
//! The module `router` of the crate `webmail` decides, and this module carries out the decision.

use alloc::string::String;
use alloc::vec::Vec;

use connections::Channel;
use http::{HandlerRequest, Reply};
use sasl::{Credentials, Proof};
use webmail::{BodyLimits, Dispatch, Request};

use super::context::HttpCall;
use super::pending::{LoginPurpose, PendingRequest};

impl PendingRequest {
    /// Begins a webmail request. `None`: the request was queued for the core of the account, which
    /// will reply.
    ///
    /// Errors: the reply, if it is known at once.
    pub(super) fn webmail(
        question: &HandlerRequest<'_>,
        call: &mut HttpCall<'_>,
    ) -> Result<Option<PendingRequest>, Reply> {
        let host = call.name_over_tls(question.host);
        let most = BodyLimits {
            form_bytes: call.web.bodies_max,
            message_octets: smtp::SmtpSettings::default().message_bytes_max,
        };
        let asked = webmail::asked(question, host, call.caller.channel == Channel::Tls, most);
        PendingRequest::of(asked, call)
    }

    /// Continues a webmail request when its form has arrived. `None`: the request was queued for
    /// the core of the account, which will reply.
    ///
    /// Errors: the reply, if it is known at once.
    pub(super) fn form(
        question: &HandlerRequest<'_>,
        body: Vec<u8>,
        call: &mut HttpCall<'_>,
    ) -> Result<Option<PendingRequest>, Reply> {
        let host = call.name_over_tls(question.host);
        let asked = webmail::form_arrived(question, body, host);
        PendingRequest::of(asked, call)
    }

    fn of(
        asked: Result<Request, Dispatch>,
        call: &mut HttpCall<'_>,
    ) -> Result<Option<PendingRequest>, Reply> {
        let frame = call.caller.connection.0;
        let dispatch = match asked {
            Ok(request) => {
                call.web.ask(frame, request);
                return Ok(None);
            }
            Err(dispatch) => dispatch,
        };
        let pending = match dispatch {
            Dispatch::Reply(reply) => return Err(reply),
            Dispatch::AdmitForm(bytes) => {
                call.cx.connections.resume(frame);
                PendingRequest::Admission(bytes)
            }
            Dispatch::AskForForm { request, bytes } => {
                call.web.ask(frame, *request);
                PendingRequest::FormAdmission { bytes }
            }
            Dispatch::AskForUpload { request, bytes, memory } => {
                call.web.ask(frame, *request);
                PendingRequest::UploadAdmission { bytes, memory }
            }
            Dispatch::LogIn { name, password, next, program, draft } => {
                let credentials = Credentials { name: &name, proof: Proof::Password(&password) };
                let attempt = call.log_in(credentials);
                let purpose = LoginPurpose::Webmail { name, program, next, draft };
                PendingRequest::Login { attempt, purpose }
            }
            Dispatch::SetPassword { account, old, new } => {
                let name = call
                    .cx
                    .store
                    .account(account)
                    .map_or_else(String::new, |known| known.address.into());
                let credentials = Credentials { name: &name, proof: Proof::Password(&old) };
                let attempt = call.log_in(credentials);
                PendingRequest::Login { attempt, purpose: LoginPurpose::Password(new) }
            }
        };
        Ok(Some(pending))
    }
}
