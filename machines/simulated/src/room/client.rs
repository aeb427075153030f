//! The clients of a room: their kinds, their timing, and how they disconnect.

use chance::Dice;
use machine::{Instant, Micros};

use super::browser::Browser;
use super::chronicle::Chronicle;
use super::context::{ClientProgress, StepContext};
use super::hoarder::Hoarder;
use super::line::ClientLine;
use super::model::Model;
use super::reader::Reader;
use super::sender::Sender;
use super::station::Station;
use super::tls_client::TlsClient;
use super::webmail_client::WebmailClient;
use crate::Client;

/// The longest wait for a response after the faults have ended. It covers a few doubled
/// retransmission timeouts. Every timeout of a service is longer.
const ANSWER_AT_LATEST: Micros = Micros::from_secs(150);
/// The additional wait if the path to the client silently drops long segments. The machine sends
/// shorter segments after three timeouts, and still shorter ones after four. After losses each
/// timeout may be a minute (RFC 6298 sections 2.4 and 5.7).
const BLACK_HOLE_FOUND_AT_LATEST: Micros = Micros::from_secs(4 * 60);

pub(super) enum ClientKind {
    Sender(Sender),
    Reader(Reader),
    Browser(Browser),
    WebmailClient(Box<WebmailClient>),
    Hoarder(Hoarder),
}

/// A client that is connected to a machine.
pub(super) struct ConnectedClient {
    pub(super) host: usize,
    pub(super) station: usize,
    pub(super) line: ClientLine,
    pub(super) talk: ClientKind,
    pub(super) dice: Dice,
    /// The time at which the client acts next.
    pub(super) next: Instant,
    /// The longest pause between two actions.
    pub(super) pace: Micros,
    /// The number of the machine's life in which it must not reset this connection. `None` if the
    /// machine did not serve when the client connected, or may have a reason for a reset.
    pub(super) life_without_resets: Option<u64>,
}

impl ConnectedClient {
    /// Lets the client act. A client that is done has closed or reset its connection.
    pub(super) fn step(
        &mut self,
        host: &mut Client,
        model: &mut Model,
        story: &mut Chronicle,
        leaving: u64,
        station: &Station,
        path_drops: bool,
    ) -> ClientProgress {
        // The longer a client has waited, the less often it acts.
        self.next = story.now
            + Micros(50 + self.dice.below(self.pace.0) + self.line.waited(story.now).0 / 64);
        let has_timed_out = self.line.has_timed_out(story.now);
        let is_well = story.healed_at.is_some_and(|healed| self.line.moved >= healed);
        let hoards = matches!(self.talk, ClientKind::Hoarder(_));
        let is_well = is_well && !hoards;
        let search = if path_drops { BLACK_HOLE_FOUND_AT_LATEST } else { Micros(0) };
        let is_answered =
            !is_well || self.line.waited(story.now) < Micros(ANSWER_AT_LATEST.0 + search.0);
        assert!(is_answered, "a client gets no response, and no fault is active");
        let hangs_up_early = matches!(&self.talk, ClientKind::Reader(reader) if reader.hangs_up_early(&self.line, &mut self.dice));
        // A hoarder stays until the faults end.
        let has_stayed = hoards && story.healed_at.is_some();
        if hangs_up_early || self.dice.happens(leaving) || has_timed_out || has_stayed {
            host.abort(self.line.connection);
            return ClientProgress::Done;
        }
        let disk_has_failed = station.disk_ever_failed;
        let mut context = StepContext { host, model, dice: &mut self.dice, story, disk_has_failed };
        let progress = match &mut self.talk {
            ClientKind::Sender(sender) => sender.step(&mut self.line, &mut context),
            ClientKind::Reader(reader) => reader.step(&mut self.line, &mut context),
            ClientKind::Browser(browser) => browser.step(&mut self.line, &mut context),
            ClientKind::WebmailClient(webmail_client) => {
                webmail_client.step(&mut self.line, &mut context)
            }
            ClientKind::Hoarder(hoarder) => hoarder.step(&mut self.line, &mut context),
        };
        let is_reset =
            progress == ClientProgress::Continues && host.is_closed(self.line.connection);
        let has_reason =
            self.life_without_resets != Some(station.life) || self.line.may_be_reset(story.now);
        assert!(!is_reset || has_reason, "a client was reset without a reason");
        if progress == ClientProgress::Continues && !self.line.has_ended(host) {
            return ClientProgress::Continues;
        }
        story.counts.over_tls +=
            u64::from(self.line.tls_client().is_some_and(TlsClient::has_heard));
        self.line.close(host, &mut self.dice);
        ClientProgress::Done
    }
}
