//! The end of a room: the faults end, and all clients and machines must become idle.

use std::collections::BTreeMap;

use chance::Dice;
use machine::{Instant, Micros};
use server::{Ending, InUse};

use super::approach::Approach;
use super::audit;
use super::browser::Browser;
use super::client::{ClientKind, ConnectedClient};
use super::context::ClientProgress;
use super::fixture::{AT_WEBMAIL, BY_POP3, INBOX, OUTBOX};
use super::listing::IndexCheck;
use super::reader::{ReadScope, Reader};
use super::sender::Sender;
use super::station::UnrequestedWork;
use super::webmail_client::WebmailClient;
use super::world::Room;

/// The longest time until every client is done and holds no resources. It includes the time that a
/// client waits for data, and the idle timeout of a session.
const REST_AT_LATEST: Micros = Micros::from_secs(3_600);
/// The longest time until every held message has left. A message leaves within half a minute, or
/// within a minute more after a disk failure. The machine's clock may be slow.
const LEFT_AT_LATEST: Micros = Micros::from_secs(120);
/// The longest time until a message for the other server is delivered or given up. The machine
/// tries for five days by its own clock, which may be slow, and an old message is rarely tried.
const POSTED_AT_LATEST: Micros = Micros::from_secs(6 * 24 * 3_600);
/// The longest time without power plus the longest time to start. After it, each message that was
/// held before is due, even by a slow clock and even if a mishap delayed a wake-up.
const START_AT_LATEST: Micros = Micros::from_secs(12);
/// The longest time until a repaired disk is in use again, by a clock that may be slow.
const DISK_AGAIN_AT_LATEST: Micros = Micros::from_secs(70);
/// The longest time that a machine needs to stop.
const STOP_AT_LATEST: Micros = Micros::from_millis(7_500);
/// The length of each of two waits: in the first a machine may finish its work, and in the second
/// it must sleep. `TURNS_ASLEEP_MAX`: the most turns in the second wait.
const SLEEP: Micros = Micros::from_secs(600);
const TURNS_ASLEEP_MAX: u64 = 20;
/// The octets of the longest message that leaves, with all header fields that machines add.
const OCTETS_MAX: u64 = 70_000;
/// The most attempts, one a minute, to deliver a message that finds no space, and the most turns of
/// each attempt. An attempt reads the message twice and delivers to up to three cores. Each of
/// these steps takes a turn or two.
const TRIES_IN_VAIN_MAX: u64 = 11;
const TURNS_OF_TRY_MAX: u64 = 12;
/// The most turns of one attempt to deliver a queue entry. A report that finds no space is composed
/// anew after the other server has refused the recipient again.
const TURNS_OF_ENTRY_MAX: u64 = 40;

impl Room {
    pub(super) fn finish(&mut self) {
        self.story.trace(|| "the faults are over".to_string());
        self.end_faults();
        self.pass(START_AT_LATEST);
        self.story.healed_at = Some(self.story.now);
        for visitor in &mut self.visitors {
            // A client continues its work, and its wait for a response begins anew, unless a
            // restart has ended its connection.
            if visitor.life_without_resets == Some(self.stations[visitor.station].life) {
                visitor.line.moved = self.story.now;
            }
        }
        self.until("every client is served", REST_AT_LATEST, Room::is_idle);
        self.check_unrequested_turns();
        self.pass(LEFT_AT_LATEST);
        self.until("held messages have left", REST_AT_LATEST, Room::is_idle);
        self.check_unrequested_turns();
        self.wait_for_deliveries();
        for station in 0..self.stations.len() {
            self.check_departures(station);
            self.check_everything(station);
        }
        self.until("every client has left", REST_AT_LATEST, Room::is_idle);
        self.wait_for_deliveries();
        self.check_unrequested_turns();
        self.check_sleep();
        for station in 0..self.stations.len() {
            self.stop(station);
        }
    }

    fn end_faults(&mut self) {
        self.end_faults_and_events();
        sometimes::end();
        for number in 0..self.stations.len() {
            self.stations[number].heal();
            // The engine retries a failed disk every minute. The machine restarts if its engine
            // does not retry the disk, and in half of the other cases.
            let station = &self.stations[number];
            let restarts =
                station.ended().is_some() || station.disk_has_failed && !station.awaits_disk();
            if restarts || station.disk_has_failed && self.dice.one_in(2) {
                self.cut(number);
            }
        }
        let serve = |room: &Room| room.stations.iter().all(|station| !station.awaits_disk());
        self.until("disks that work again are used", DISK_AGAIN_AT_LATEST, serve);
        for station in &mut self.stations {
            station.disk_has_failed = false;
        }
    }

    /// Checks that no machine has work for which its engine has not requested a turn.
    fn check_unrequested_turns(&mut self) {
        for number in 0..self.stations.len() {
            for core in self.stations[number].cores() {
                let found =
                    self.stations[number].unrequested_turn(core, self.story.now, &mut self.story);
                assert!(
                    found == UnrequestedWork::default(),
                    "core {core} of machine {number} was woken for nothing: {found:?}"
                );
            }
        }
    }

    fn pass(&mut self, span: Micros) {
        let end = self.story.now + span;
        while self.story.now < end {
            self.step(end);
        }
    }

    fn until(&mut self, what: &str, at_latest: Micros, mut reached: impl FnMut(&Room) -> bool) {
        let end = self.story.now + at_latest;
        while !reached(self) {
            self.step(end);
            assert!(
                self.story.now < end,
                "stuck while waiting until {what}: {} clients, in use: {:?}, frames: {:?}",
                self.visitors.len(),
                self.in_use(),
                self.wire.next()
            );
        }
    }

    fn is_idle(&self) -> bool {
        self.visitors.is_empty()
            && self.stations.iter().all(|station| {
                station.is_serving()
                    && station.machine.disk.waiting() == 0
                    && station.engines.in_use() == InUse::default()
            })
    }

    /// Waits until no machine has a queue entry, or until the time for attempts is over.
    fn wait_for_deliveries(&mut self) {
        let end = self.story.now + POSTED_AT_LATEST;
        while self.story.now < end
            && self.stations.iter().any(|station| station.engines.queue_entries() > 0)
        {
            self.step(end);
        }
        self.until("no delivery is in progress", REST_AT_LATEST, Room::is_idle);
    }

    /// Checks that all held messages and all messages for the other server have left, except those
    /// on bad sectors and those that find no space. Checks that the queue shows as many entries as
    /// the outboxes have.
    fn check_departures(&mut self, station: usize) {
        assert!(
            self.listings[station].is_checking(),
            "a machine serves, but not all of its cores do"
        );
        let model = &mut self.models[station];
        let space = audit::audit(&self.stations[station].machine.disk, model, 0);
        let engines = &self.stations[station].engines;
        let has_room = |core| engines.of(core).store().room().holds(OCTETS_MAX);
        let is_full = space.free_bytes <= space.reserve_bytes
            || !self.stations[station].cores().all(has_room);
        assert!(
            is_full || model.all_have_left(),
            "held messages have not left: {:?}",
            model.on_their_way()
        );
        let waiting = model.posted_waiting();
        assert!(
            is_full || waiting.is_empty(),
            "messages were accepted and never sent: {waiting:?}"
        );
        let shown = self.stations[station].engines.queue_entries();
        assert_eq!(shown, model.entries, "the queue does not show exactly the outbox entries");
    }

    /// The number of messages in the inbox of an account.
    fn inbox_messages(&self, station: usize, account: usize) -> usize {
        self.listings[station].mailbox(account, INBOX).map_or(0, |inbox| inbox.messages as usize)
    }

    /// Lets clients read all messages, fetch all pages, and send one more message by each of
    /// [`Approach::SENDERS`].
    fn check_everything(&mut self, station: usize) {
        for account in 0..BY_POP3 {
            for approach in Approach::READERS {
                let before = self.inbox_messages(station, account);
                let talk =
                    ClientKind::Reader(Reader::new(account, ReadScope::All, approach.security));
                let ClientKind::Reader(reader) = self.run_client(station, approach, talk) else {
                    continue;
                };
                assert!(reader.has_quit, "{account} was not served: {approach:?}");
                self.models[station].audit(account, &reader.read);
                // A delayed report may arrive while the client reads the list.
                let counted = before..=self.inbox_messages(station, account);
                let shown = reader.messages_shown();
                assert!(
                    counted.contains(&shown),
                    "POP3 lists {shown} of the inbox of {account}, which counts {counted:?}"
                );
            }
        }
        self.check_webmail(station);
        for approach in Approach::BROWSERS {
            let talk =
                ClientKind::Browser(Browser::new(approach, ReadScope::All, &mut Dice::new(1)));
            let ClientKind::Browser(browser) = self.run_client(station, approach, talk) else {
                continue;
            };
            assert!(browser.is_done(), "the last browser was not served: {approach:?}");
        }
        for approach in Approach::SENDERS {
            let sender = Sender::new(approach, &mut self.models[station], &mut Dice::new(1));
            self.run_client(station, approach, ClientKind::Sender(sender));
        }
    }

    /// Lets a client list and read every message at the webmail, and search for each. If a delayed
    /// report arrives during the check, the expected counters are no longer right, and the check
    /// starts again.
    fn check_webmail(&mut self, station: usize) {
        let approach = Approach::draw(&Approach::WEBMAIL_CLIENTS, &mut self.dice);
        let webmail_client =
            WebmailClient::new(AT_WEBMAIL, approach, ReadScope::All, &mut Dice::new(1));
        let listing = &self.listings[station];
        let next_uid =
            |listing: &IndexCheck| listing.mailbox(AT_WEBMAIL, INBOX).map(|inbox| inbox.uid_next);
        let unseen =
            |mailbox| listing.mailbox(AT_WEBMAIL, mailbox).map_or(0, |mailbox| mailbox.unseen);
        let next_uid_before = next_uid(listing);
        let has_outbox =
            listing.mailbox(AT_WEBMAIL, OUTBOX).is_some_and(|outbox| outbox.messages > 0);
        let shown = (INBOX..=OUTBOX).filter(|mailbox| *mailbox < OUTBOX || has_outbox);
        let unseen: BTreeMap<u32, u32> = shown.map(|mailbox| (mailbox, unseen(mailbox))).collect();
        let talk =
            self.run_client(station, approach, ClientKind::WebmailClient(Box::new(webmail_client)));
        let ClientKind::WebmailClient(webmail_client) = talk else { return };
        if next_uid(&self.listings[station]) != next_uid_before {
            return self.check_webmail(station);
        }
        assert_eq!(webmail_client.unseen, Some(unseen), "the webmail counts the unread messages");
        assert!(
            webmail_client.is_done,
            "the last client of the webmail was not served: {approach:?}"
        );
    }

    /// Runs one client alone until it is done.
    fn run_client(&mut self, station: usize, approach: Approach, talk: ClientKind) -> ClientKind {
        self.connect_client(0, station, approach, talk, Dice::new(1));
        let mut visitor = self.visitors.pop().unwrap_or_else(|| unreachable!("a client was added"));
        let end = self.story.now + REST_AT_LATEST;
        loop {
            self.step(visitor.next.min(end));
            assert!(
                self.story.now < end,
                "the last client is never done; in use: {:?}",
                self.in_use()
            );
            if self.story.now >= visitor.next && self.is_done(&mut visitor) {
                self.hosts[0].left.push(visitor.line.connection);
                return visitor.talk;
            }
        }
    }

    fn is_done(&mut self, visitor: &mut ConnectedClient) -> bool {
        let host = &mut self.hosts[visitor.host].client;
        let model = &mut self.models[visitor.station];
        let station = &self.stations[visitor.station];
        visitor.step(host, model, &mut self.story, 0, station, false) == ClientProgress::Done
    }

    /// Checks that an idle machine sleeps, except for delivery attempts that fail.
    fn check_sleep(&mut self) {
        self.pass(SLEEP);
        let turns = self.story.counts.turns;
        self.pass(SLEEP);
        let turns = self.story.counts.turns - turns;
        let in_vain: usize = self.models.iter().map(|model| model.on_their_way().len()).sum();
        let entries: usize =
            self.stations.iter().map(|station| station.engines.queue_entries()).sum();
        let turns_of_tries =
            TURNS_OF_TRY_MAX * in_vain as u64 + TURNS_OF_ENTRY_MAX * entries as u64;
        let most = TURNS_ASLEEP_MAX + TRIES_IN_VAIN_MAX * turns_of_tries;
        assert!(
            turns < most,
            "{turns} turns in {SLEEP:?} with nothing to do, {in_vain} + {entries} in vain"
        );
    }

    fn stop(&mut self, station: usize) {
        self.stations[station].machine.stop = true;
        self.until("a machine has stopped", STOP_AT_LATEST, |room| {
            room.stations[station].ended().is_some()
        });
        assert_eq!(self.stations[station].ended(), Some(Ending::Asked));
        assert!(
            self.stations[station].engines.have_all_stopped(),
            "the first core is the last one to stop"
        );
        let now: Instant = self.story.now;
        self.stations[station].power_off(now, now, &mut self.story);
        audit::audit(&self.stations[station].machine.disk, &mut self.models[station], 0);
    }
}
