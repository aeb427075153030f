//! The question to the filter about one message. It is sent over HTTP when all other checks are
//! done (`relay::filter`).
//!
//! ```text
//!   Arriving ── all of it ──▸ Waiting (its turn) ──▸ LookedUp, Asked ──▸ Over
//!      └── too large, or too much memory in use for others ────────────────┘
//! ```
//! Invariants:
//! - A message waits no longer than the configured time, which includes the wait for its turn and
//!   the lookup of the filter's host. After that time, the configuration decides about the message.
//!   If the filter was being looked up or asked at that time, it counts as away.
//! - The filter is not asked about a message that ends while the filter is away, and the message
//!   does not wait.
//! - Whatever happens to the session, the memory of the message is released, and the connection is
//!   ended. Then the next message has its turn.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;

use configuration::WhenAway;
use connections::{Caller, ClientTransport, Owner, ServerIdentity, TransportEvent};
use dns::{Knowledge, Missing};
use machine::Instant;
use relay::filter::{FilterEnvelope, FilterQuestion, FilterVerdict};
use relay::route::MailRoute;
use relay::{Lost, Speaker};
use resolver::{Known, Ourselves, QuestionNumber, route_to};
use tasks::{Continuation, FrameId};

use crate::{Filter, FilterContext, MESSAGE_OCTETS_MAX};

/// The steps in bytes by which the memory for a message grows.
const STEP_OCTETS: usize = 32 * 1024;

/// The texts for a message about which the filter has not answered.
const UNKNOWN: &str = "the content filter was not available";
const PUT_OFF: &str = "The content filter is not available, try again later";

/// The question to the filter about one message.
pub struct FilterQuery {
    stage: Stage,
    caller: Caller,
    at: Continuation,
    greeting_name: Box<str>,
    /// The message as it came, until it is sent.
    message: Vec<u8>,
    /// The bytes of memory that are reserved for the message.
    kept: usize,
    until: Instant,
    question: Option<Box<FilterQuestion>>,
    knowledge: Knowledge,
    /// The question to name servers that is not answered.
    asked: Option<(QuestionNumber, dns::Question)>,
    /// The filter's addresses that were not called yet.
    addresses: VecDeque<SocketAddr>,
    connection: Option<FilterConnection>,
}

/// The stage of the question.
enum Stage {
    /// The message is arriving.
    Arriving,
    /// The message waits for its turn.
    Waiting,
    /// The addresses of the filter are being looked up.
    LookedUp,
    /// The filter is being called or asked.
    Asked,
    /// The verdict is known.
    Over(FilterVerdict),
}

/// A connection to the filter.
struct FilterConnection {
    transport: ClientTransport,
    is_open: bool,
}

impl FilterQuery {
    /// A question about a message that begins to arrive on the session of `caller`. `at`: the
    /// continuation for answers from name servers.
    pub fn begin(greeting_name: &str, caller: Caller, at: Continuation) -> Box<FilterQuery> {
        Box::new(FilterQuery {
            stage: Stage::Arriving,
            caller,
            at,
            greeting_name: greeting_name.into(),
            message: Vec::new(),
            kept: 0,
            until: Instant::NEVER,
            question: None,
            knowledge: Knowledge::default(),
            asked: None,
            addresses: VecDeque::new(),
            connection: None,
        })
    }

    /// Takes the next bytes of the message, as they came.
    pub fn arrived(&mut self, bytes: &[u8], filter: &mut Filter) {
        let Stage::Arriving = self.stage else { return };
        let octets = self.message.len() + bytes.len();
        if octets > MESSAGE_OCTETS_MAX {
            self.stage = Stage::Over(FilterVerdict::Clean);
            return self.drop_message(filter);
        }
        if octets > self.kept {
            let more = octets.next_multiple_of(STEP_OCTETS) - self.kept;
            if !filter.reserve(more) {
                self.stage = Stage::Over(verdict_of(filter.named.when_away));
                return self.drop_message(filter);
            }
            self.kept += more;
            self.message.reserve_exact(self.kept - self.message.len());
        }
        self.message.extend_from_slice(bytes);
    }

    /// Whether the envelope must be given by [`FilterQuery::ended`] before the filter can be asked.
    pub fn needs_envelope(&self) -> bool {
        matches!(self.stage, Stage::Arriving)
    }

    /// Ends the message, and gives its reverse path and its recipients.
    pub fn ended(
        &mut self,
        (reverse_path, recipients): (&str, &[String]),
        identifier: &str,
        filter: &Filter,
        now: Instant,
    ) {
        if !filter.may_be_asked(now) {
            self.stage = Stage::Over(verdict_of(filter.named.when_away));
            return;
        }
        let (address, hello, hostname) =
            (self.caller.address, &*self.greeting_name, &*filter.hostname);
        let envelope =
            FilterEnvelope { address, hello, reverse_path, recipients, hostname, identifier };
        let message = core::mem::take(&mut self.message);
        let (host, password) = (filter.named.place.to_string(), filter.named.password.as_deref());
        self.question = Some(Box::new(FilterQuestion::about(message, &envelope, &host, password)));
        self.until = now + filter.named.timeout;
        self.stage = Stage::Waiting;
    }

    /// Continues the question as far as possible. Returns whether the verdict is known.
    pub fn is_known(&mut self, filter: &mut Filter, cx: &mut FilterContext<'_>) -> bool {
        loop {
            let is_moving = match self.stage {
                Stage::Over(_) => return true,
                Stage::Arriving => false,
                Stage::Waiting => self.take_turn(filter),
                Stage::LookedUp => self.look_up(filter, cx),
                Stage::Asked if self.connection.is_some() => self.converse(filter, cx),
                Stage::Asked => self.call(filter, cx),
            };
            if !is_moving {
                let left = self.until.since(cx.turn.now);
                cx.connections.set_deadline(cx.turn.now, self.caller.connection, Some(left));
                return false;
            }
        }
    }

    /// The verdict, once it is known.
    pub fn verdict(&self) -> FilterVerdict {
        let Stage::Over(verdict) = &self.stage else {
            unreachable!("the verdict is not known yet")
        };
        verdict.clone()
    }

    fn session(&self) -> FrameId {
        self.caller.connection.0
    }

    /// Continues with the next stage if it is the turn of this message. Returns whether it is.
    fn take_turn(&mut self, filter: &mut Filter) -> bool {
        let is_turn = filter.take_turn_of(self.session());
        if is_turn {
            self.stage = Stage::LookedUp;
        }
        is_turn
    }

    /// Looks up the addresses of the filter. Returns false if it waits for name servers.
    fn look_up(&mut self, filter: &mut Filter, cx: &mut FilterContext<'_>) -> bool {
        if self.asked.is_some() {
            return false;
        }
        let ourselves =
            Ourselves::of(&filter.hostname, cx.connections.net(), &filter.private_networks);
        let place = &filter.named.place;
        match route_to(&place.host, &ourselves.us(), 0, &self.knowledge) {
            Err(Missing(_)) if !cx.names.can_be_asked() => {
                self.filter_failed("cannot be resolved without a name server", filter, cx)
            }
            Err(Missing(question)) => {
                let number = cx.names.ask(self.at, question.clone());
                self.asked = Some((number, question));
                return false;
            }
            Ok(MailRoute::By { hops, .. }) => {
                self.addresses =
                    hops.iter().map(|hop| SocketAddr::new(hop.address, place.port)).collect();
                self.stage = Stage::Asked;
            }
            Ok(MailRoute::Nowhere(_)) => self.filter_failed("cannot be resolved", filter, cx),
        }
        true
    }

    /// Takes an answer of name servers. Returns the answer if it belongs to another question.
    pub fn name_known(&mut self, number: QuestionNumber, known: Known) -> Option<Known> {
        let Some((_, question)) = self.asked.take_if(|(asked, _)| *asked == number) else {
            return Some(known);
        };
        self.knowledge.learn(question, known);
        None
    }

    /// Calls the next address.
    fn call(&mut self, filter: &mut Filter, cx: &mut FilterContext<'_>) -> bool {
        let Some(address) = self.addresses.pop_front() else {
            self.filter_failed("does not answer", filter, cx);
            return true;
        };
        if let Some(transport) = ClientTransport::to(
            address,
            ServerIdentity::Unchecked,
            None,
            Owner::Filter(self.session()),
            (cx.turn, cx.connections),
        ) {
            self.connection = Some(FilterConnection { transport, is_open: false });
        }
        true
    }

    /// Sends the output that has buffer space, and checks whether the filter has answered.
    fn converse(&mut self, filter: &mut Filter, cx: &mut FilterContext<'_>) -> bool {
        let (Some(connection), Some(question)) = (&mut self.connection, &mut self.question) else {
            return false;
        };
        if connection.is_open {
            connection.transport.say(&mut **question, cx.turn, cx.connections);
        }
        match question.verdict() {
            None => {
                if connection.is_open && !question.output().is_empty() {
                    cx.connections.want_room(cx.turn.now, connection.transport.connection());
                }
                return false;
            }
            Some(Some(verdict)) => {
                let verdict = verdict.clone();
                filter.answered();
                self.end_with(verdict, filter, cx);
            }
            Some(None) => {
                self.hang_up(cx);
                self.question = self.question.take().map(|question| Box::new(question.again()));
            }
        }
        true
    }

    /// Processes an event of the connection.
    pub fn transport_event(&mut self, event: TransportEvent, cx: &mut FilterContext<'_>) {
        let (Some(connection), Some(question)) = (&mut self.connection, &mut self.question) else {
            return;
        };
        match event {
            TransportEvent::Made | TransportEvent::Room => connection.is_open = true,
            TransportEvent::Bytes => {
                connection.transport.hear(&mut **question, cx.turn, cx.connections)
            }
            TransportEvent::Over => question.lost(Lost::Closed),
            TransportEvent::Turn => {}
        }
    }

    /// Gives the question up. Returns false if the message was still arriving, or the verdict is
    /// known already.
    pub fn give_up(&mut self, filter: &mut Filter, cx: &mut FilterContext<'_>) -> bool {
        match self.stage {
            Stage::Arriving | Stage::Over(_) => return false,
            // If the machine stops, or other messages took all the time, the filter does not count
            // as away.
            _ if cx.turn.now < self.until => self.end_without_answer(filter, cx),
            Stage::Waiting => self.end_without_answer(filter, cx),
            Stage::LookedUp | Stage::Asked => {
                self.filter_failed("does not answer in time", filter, cx)
            }
        }
        true
    }

    /// Ends the question: the filter cannot be asked, for this reason.
    fn filter_failed(&mut self, why: &str, filter: &mut Filter, cx: &mut FilterContext<'_>) {
        filter.did_not_answer(why, cx.turn.now);
        self.end_without_answer(filter, cx);
    }

    /// Ends the question with the verdict that the configuration has for a filter that does not
    /// answer.
    fn end_without_answer(&mut self, filter: &mut Filter, cx: &mut FilterContext<'_>) {
        self.end_with(verdict_of(filter.named.when_away), filter, cx);
    }

    fn end_with(
        &mut self,
        verdict: FilterVerdict,
        filter: &mut Filter,
        cx: &mut FilterContext<'_>,
    ) {
        self.forget(filter, cx);
        self.stage = Stage::Over(verdict);
    }

    /// Releases the memory of the message, and ends the question.
    pub fn forget(&mut self, filter: &mut Filter, cx: &mut FilterContext<'_>) {
        self.hang_up(cx);
        self.asked = None;
        self.question = None;
        self.drop_message(filter);
        filter.end_turn_of(self.session(), cx.connections);
    }

    fn drop_message(&mut self, filter: &mut Filter) {
        self.message = Vec::new();
        filter.kept -= core::mem::take(&mut self.kept);
    }

    /// Closes the connection properly if the filter has answered. Otherwise ends it at once.
    fn hang_up(&mut self, cx: &mut FilterContext<'_>) {
        let Some(mut connection) = self.connection.take() else { return };
        let is_answered = self
            .question
            .as_ref()
            .is_some_and(|question| matches!(question.verdict(), Some(Some(_))));
        if is_answered {
            connection.transport.close(cx.turn, cx.connections);
        } else {
            connection.transport.end(cx.connections);
        }
    }
}

/// The verdict on a message about which the filter has not answered.
fn verdict_of(when_away: WhenAway) -> FilterVerdict {
    match when_away {
        WhenAway::Accept => FilterVerdict::Clean,
        WhenAway::Junk => FilterVerdict::Suspect(UNKNOWN.to_string()),
        WhenAway::Defer => FilterVerdict::Later(PUT_OFF.to_string()),
    }
}
