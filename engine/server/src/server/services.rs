//! The services of a core as one list: the work of each service in a turn, its next deadline, and
//! whether the core may stop.
//!
//! Invariant: every service is on the list. [`Services`] and all functions over its members are
//! made from the list.

use alloc::boxed::Box;
use alloc::sync::Arc;

use certificates::{self, CertificateEvent, Certificates};
use channel::Class;
use inbound::Inbound;
use machine::{Entropy, Instant};
use outbound::{self, Outbound};
use pop3_server::Pop3;
use resolver::NameLookups;
use submission::{self, Submission};
use web::Web;
use webmail::{RequestHandlers, RowCache};

use crate::links::Message;
use crate::parts::Parts;
use crate::session::Context;

use super::Server;

/// Defines [`Services`] and the functions over them. Services that act only for sessions
/// (`of_sessions`) have none of the following functions. Each other service has all of them:
///
/// - `has_work`: whether it has work in this turn. Called in every turn, so it must be cheap.
/// - `run`: does that work, and passes on the results.
/// - `can_go_on`: whether the next turn has work that no event announces.
/// - `next_deadline`: the time at which it has work even without an event.
/// - `in_flight`: started work that the core must wait for before it stops, except work that is
///   counted as a session or as a disk request.
/// - `stop`: makes it begin no new work, because the machine stops.
macro_rules! services {
    (of_sessions { $($of_sessions:ident: $type:ty),+ }
    $($(#[$doc:meta])* $field:ident: $service:ty {
        has_work: $has_work:expr,
        run: $run:expr,
        can_go_on: $can_go_on:expr,
        next_deadline: $next_deadline:expr,
        in_flight: $in_flight:expr,
        stop: $stop:expr,
    })+) => {
        /// The services of a core.
        pub(crate) struct Services {
            $(pub(crate) $of_sessions: $type,)+
            $($(#[$doc])* pub(crate) $field: $service,)+
        }

        impl Services {
            /// Whether the next turn has work that no event announces.
            #[inline]
            pub(crate) fn can_go_on(&self) -> bool {
                false $(|| {
                    let can_go_on: fn(&$service) -> bool = $can_go_on;
                    can_go_on(&self.$field)
                })+
            }

            /// The time at which a service has work even without an event.
            #[inline]
            pub(crate) fn next_deadline(&self) -> Instant {
                Instant::NEVER$(.min({
                    let next_deadline: fn(&$service) -> Instant = $next_deadline;
                    next_deadline(&self.$field)
                }))+
            }

            /// The started work that the core must wait for before it stops.
            pub(crate) fn in_flight(&self) -> usize {
                0 $(+ {
                    let in_flight: fn(&$service) -> usize = $in_flight;
                    in_flight(&self.$field)
                })+
            }
        }

        impl Server {
            /// Runs the services that have work, in the order of the list.
            #[inline]
            pub(crate) fn run_services(&mut self, entropy: &mut dyn Entropy) {
                $(
                    let has_work: fn(&$service, &Parts) -> bool = $has_work;
                    if has_work(&self.services.$field, &self.parts) {
                        let run: fn(&mut Server, &mut dyn Entropy) = $run;
                        run(self, entropy);
                    }
                )+
            }

            /// Makes the services begin no new work, because the machine stops.
            pub(crate) fn stop_services(&mut self) {
                $(
                    let stop: fn(&mut Server) = $stop;
                    stop(self);
                )+
            }
        }
    };
}

services! {
    of_sessions { inbound: Inbound, pop3: Pop3 }
    /// It runs before the webmail, which answers the requests of HTTP sessions.
    web: Web {
        has_work: |web, _| web.has_requests(),
        run: |server, _| server.bring_requests(),
        can_go_on: Web::has_requests,
        next_deadline: |_| Instant::NEVER,
        // The next turn passes all requests on.
        in_flight: |_| 0,
        stop: |_| (),
    }
    /// It runs before the webmail, which gets the answers of this service about the queue.
    outbound: Outbound {
        has_work: |outbound, parts| outbound.has_work(&parts.store.own.store, parts.turn.now),
        run: Server::let_outbound_work,
        can_go_on: Outbound::has_unannounced_work,
        next_deadline: |outbound| Instant::or_never(outbound.next_deadline()),
        in_flight: Outbound::under_way,
        stop: |server| server.let_outbound(Outbound::stop),
    }
    webmail: Webmail {
        has_work: |webmail, parts| webmail.handlers.has_work(&parts.store.own.store, parts.turn.now),
        run: Server::run_handlers,
        can_go_on: |webmail| webmail.handlers.can_go_on(),
        next_deadline: |webmail| webmail.handlers.next_deadline(),
        in_flight: |webmail| webmail.handlers.under_way(),
        stop: |_| (),
    }
    submission: Submission {
        has_work: |submission, parts| submission.has_work(parts.turn.now),
        run: |server, _| server.let_submission(Submission::run),
        can_go_on: Submission::can_scan,
        next_deadline: |submission| Instant::or_never(submission.next_deadline()),
        in_flight: Submission::under_way,
        stop: |server| server.services.submission.stop(),
    }
    /// It runs after the services that make DNS queries.
    names: NameLookups {
        has_work: |names, parts| names.needs_run() || names.next_deadline() <= parts.turn.now,
        run: |server, _| server.look_names_up(),
        can_go_on: NameLookups::needs_run,
        next_deadline: NameLookups::next_deadline,
        // The stop ends all queries.
        in_flight: |_| 0,
        stop: |server| server.services.names.stop(&mut server.parts.connections),
    }
    certificates: Certificates {
        has_work: |certificates, parts| {
            certificates.has_uploads() || certificates.is_expiry_check_due(parts.turn.now)
        },
        run: |server, _| server.let_certificates(Certificates::run),
        can_go_on: Certificates::can_take_up,
        next_deadline: Certificates::next_deadline,
        in_flight: |_| 0,
        stop: |server| server.services.certificates.stop_reading(),
    }
}

/// The webmail of this core's accounts.
pub(crate) struct Webmail {
    pub(crate) handlers: RequestHandlers,
    /// A cache of rows of message lists.
    pub(crate) rows: RowCache,
}

impl Services {
    /// The context of sessions.
    #[inline]
    pub(crate) fn with<'a>(&'a mut self, parts: &'a mut Parts) -> Context<'a> {
        let Services { inbound, pop3, web, names, .. } = self;
        Context { parts, inbound, pop3, web, names }
    }
}

/// Calls of the services, each with the members of [`Parts`] that the service uses.
impl Server {
    pub(crate) fn let_submission(
        &mut self,
        act: impl FnOnce(&mut Submission, &mut submission::SubmissionContext<'_>),
    ) {
        let Parts { turn, store, directory, .. } = &mut self.parts;
        act(
            &mut self.services.submission,
            &mut submission::SubmissionContext { turn: *turn, store, directory },
        );
    }

    #[inline(never)]
    pub(crate) fn let_outbound(
        &mut self,
        act: impl FnOnce(&mut Outbound, &mut outbound::OutboundContext<'_>),
    ) {
        let Services { outbound, names, .. } = &mut self.services;
        let Parts { turn, connections, store, directory, compute, signer, logins, console, .. } =
            &mut self.parts;
        let turn = *turn;
        let cx = outbound::OutboundContext {
            turn,
            connections,
            store,
            directory,
            names,
            compute,
            signer,
            logins,
            console,
        };
        act(outbound, &mut { cx });
    }

    fn let_outbound_work(&mut self, entropy: &mut dyn Entropy) {
        self.let_outbound(Outbound::work);
        self.tell_of_queue(entropy);
    }

    /// Calls `act` with the certificates, and passes on their events.
    pub(crate) fn let_certificates<R>(
        &mut self,
        act: impl FnOnce(&mut Certificates, &mut certificates::CertificateContext<'_>) -> R,
    ) -> R {
        let Parts { turn, connections, store, console, .. } = &mut self.parts;
        let cx = &mut certificates::CertificateContext { turn: *turn, connections, store, console };
        let result = act(&mut self.services.certificates, cx);
        self.bring_events_of_certificates();
        result
    }

    #[inline(never)]
    fn bring_events_of_certificates(&mut self) {
        while let Some(event) = self.services.certificates.next_event() {
            let Parts { turn, connections, links, store, console, .. } = &mut self.parts;
            match event {
                CertificateEvent::Upload(keeper, upload) => {
                    links.tell(keeper, Class::Answer, Message::Upload(upload))
                }
                CertificateEvent::Show(shown) => {
                    let others = links
                        .tell_others(Class::Answer, || Message::Certificates(Arc::clone(&shown)));
                    let cx = &mut certificates::CertificateContext {
                        turn: *turn,
                        connections,
                        store,
                        console,
                    };
                    self.services.certificates.others_are_told(others, cx);
                }
                CertificateEvent::Shows(keeper, version) => {
                    links.tell(keeper, Class::Answer, Message::CertificatesShown(version));
                }
                CertificateEvent::Replaced(ticket, replaced) => {
                    let message = Message::Uploaded(ticket.frame, Box::new(replaced));
                    links.tell(ticket.core, Class::Answer, message);
                }
                CertificateEvent::PagesAreOutdated => self.services.web.forget_pages(),
            }
        }
    }
}
