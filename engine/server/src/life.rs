//! The life cycle of the engine: open the store, make the configured accounts, serve, stop.

use alloc::sync::Arc;

use accounts::{AccountSetup, SetupContext};
use certificates::{Certificates, ReadSoFar, clock};
use channel::Class;
use configuration::Configuration;
use connections::{Handshakes, announce_share};
use health::{HealthPhase, StorageHealth};
use machine::{CoreId, Instant, Machine, Micros, SERVICES, Security};
use net::{Sending, Service};
use store::{Owners, State, Wake};

use crate::links::Message;
use crate::parts::Parts;
use crate::server::Server;
use crate::session::Session;

/// The time that open sessions have to end when the machine is asked to stop. It is for sessions in
/// the middle of a message, and for clients that have not acknowledged their last reply.
const FAREWELL: Micros = Micros::from_secs(5);
/// The time after [`FAREWELL`] for the last replies of sessions, and for the disk to finish. No
/// acknowledged message depends on this time.
const REST: Micros = Micros::from_secs(2);
/// After this time the machine no longer waits for clients that have acknowledged everything but
/// keep their connections open.
const GRACE: Micros = Micros::from_millis(500);

/// The stages of an engine's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    /// The store opens. A core that does not own the disk waits here until it knows all accounts.
    Opening,
    /// The accounts become what the configuration wants.
    MakingAccounts,
    /// The engine reads the uploaded certificates.
    ReadingCertificates,
    /// The other cores take over their shards. The value is the number of cores that own shards,
    /// once known.
    Sharing(Option<Owners>),
    /// New accounts get their passwords. The core waits until all cores are ready to listen.
    Assembling,
    /// Clients are served.
    Serving,
    /// Sessions end, until this time at the latest.
    Stopping { until: Instant },
    /// Connections close and the disk finishes, until this time at the latest.
    Leaving { until: Instant },
    /// The other cores may still send requests, until this time at the latest.
    AwaitingOthers { until: Instant },
    /// The engine has stopped.
    Stopped(Ending),
}

/// The life cycle of a core: its stage, and its work until it serves.
pub(crate) struct Lifecycle {
    core: CoreId,
    life: Life,
    accounts: AccountSetup,
    health: StorageHealth,
}

/// The reason why an engine stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The operator asked the machine to stop, and everything acknowledged is on the disk.
    Asked,
    /// The disk cannot be used. The console has the reason.
    Refused,
}

impl Lifecycle {
    /// `configuration`: names the accounts to make.
    pub(crate) fn new(core: CoreId, configuration: &Arc<Configuration>) -> Lifecycle {
        let accounts = AccountSetup::of(configuration);
        Lifecycle { core, life: Life::Opening, accounts, health: StorageHealth::new(core) }
    }

    /// The reason why the engine stopped, once it has stopped.
    pub(crate) fn ending(&self) -> Option<Ending> {
        if let Life::Stopped(ending) = self.life { Some(ending) } else { None }
    }

    /// Does the work of the current stage, and begins the next stage when it is time.
    pub(crate) fn advance(
        &mut self,
        server: &mut Server,
        sending: &Sending,
        machine: &mut impl Machine,
    ) {
        self.examine_health(&mut server.parts);
        match self.life {
            Life::Opening => self.look_at_store(server, machine),
            Life::MakingAccounts => self.make_accounts(server),
            Life::ReadingCertificates => self.read_certificates(server),
            Life::Sharing(owners) => self.share_out(owners, server),
            Life::Serving if self.accounts.is_over() => {}
            Life::Assembling | Life::Serving => self.make_passwords(server, machine),
            Life::Stopped(_) => {}
            Life::Stopping { until } => self.leave_without_connections(until, server),
            Life::Leaving { until } => self.leave_with_nothing_left(until, server),
            Life::AwaitingOthers { until } => {
                self.stop_after_others(until, &mut server.parts, sending)
            }
        }
        let is_ending = matches!(
            self.life,
            Life::Stopping { .. }
                | Life::Leaving { .. }
                | Life::AwaitingOthers { .. }
                | Life::Stopped(_)
        );
        if !is_ending && self.core == CoreId::FIRST && machine.stop_requested() {
            self.begin_stopping(server);
        }
    }

    /// Whether the next turn has work that no event announces.
    pub(crate) fn can_go_on(&self, server: &Server) -> bool {
        let Server { parts, services, .. } = server;
        match self.life {
            Life::MakingAccounts => self.accounts.can_provision(parts.turn.now),
            Life::Assembling | Life::Serving => self.accounts.can_make_passwords(),
            Life::ReadingCertificates => services.certificates.is_to_be_read(parts.turn.now),
            Life::Stopping { .. } => is_without_connections(parts),
            Life::Leaving { .. } => has_nothing_left(server),
            Life::AwaitingOthers { .. } => parts.store.is_last(),
            _ => false,
        }
    }

    /// The time at which the life cycle needs a turn even without an event.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        let of_life = match self.life {
            Life::Stopping { until } if now < grace_until(until) => grace_until(until),
            Life::Stopping { until } | Life::Leaving { until } | Life::AwaitingOthers { until } => {
                until
            }
            _ => self.accounts.next_deadline(now),
        };
        of_life.min(self.health.next_deadline())
    }

    fn examine_health(&mut self, parts: &mut Parts) {
        let phase = match self.life {
            Life::Opening => HealthPhase::Opening,
            Life::Serving => HealthPhase::Serving,
            _ => HealthPhase::NotServing,
        };
        let Parts { store, console, turn, .. } = parts;
        self.health.examine(phase, turn.now, &mut store.own.store, console);
    }

    fn look_at_store(&mut self, server: &mut Server, machine: &mut impl Machine) {
        if self.core != CoreId::FIRST {
            return;
        }
        let Parts { store, console, connections, turn, .. } = &mut server.parts;
        let store = &store.own.store;
        match store.state() {
            State::Opening => {}
            State::Refused(reason) => {
                console.print(format_args!("store: {reason}"));
                self.life = Life::Stopped(Ending::Refused);
            }
            State::Serving | State::ReadOnly(_) => {
                if store.is_new() {
                    let kib = store.space().bytes >> 10;
                    console.print(format_args!(
                        "store: the disk was blank; created a new store of {kib} KiB"
                    ));
                }
                if store.is_converted() && store.state() == State::Serving {
                    console.print(format_args!(
                        "store: the disk has been converted to format {}",
                        store.format()
                    ));
                }
                for finding in store.findings() {
                    console.print(format_args!("store: {}", finding.named(store)));
                }
                let clocks = (machine.wall_clock(), machine.program_date());
                clock::announce(console, clocks, turn.wall, store.newest_date());
                // The secret is stored on the disk, so the addresses are the same at each start.
                let secret = store.secret(b"IPv6 addresses");
                connections.begin_ipv6(turn.now, &secret);
                self.life = Life::MakingAccounts;
                self.make_accounts(server);
            }
        }
    }

    fn make_accounts(&mut self, server: &mut Server) {
        let needs = Certificates::wants_account(&server.parts.connections, &server.parts.store);
        let certificates = needs.then_some(certificates::ACCOUNT);
        if self.accounts.provision(certificates, &mut setup_context(&mut server.parts)) {
            self.accounts_are_made(server);
        }
    }

    fn make_passwords(&mut self, server: &mut Server, entropy: &mut impl Machine) {
        self.accounts.make_passwords(&mut setup_context(&mut server.parts), entropy);
        if self.life == Life::Assembling {
            self.serve_when_ready(server);
        }
    }

    /// Processes an outcome of the store for the setup of accounts.
    pub(crate) fn account_changed(&mut self, wake: Wake, server: &mut Server) {
        let cx = &mut setup_context(&mut server.parts);
        self.accounts.woken(wake.continuation, wake.outcome, cx);
        server.end_outdated_sessions();
    }

    /// Continues after all accounts of the configuration exist.
    fn accounts_are_made(&mut self, server: &mut Server) {
        let parts = &mut server.parts;
        parts.store.note_accounts();
        server.let_certificates(|certificates, cx| certificates.begin_reading(cx));
        self.life = Life::ReadingCertificates;
        self.read_certificates(server);
    }

    /// Reads the stored certificates. After the last one, distributes the shards.
    fn read_certificates(&mut self, server: &mut Server) {
        if server.let_certificates(Certificates::read_on) == ReadSoFar::All {
            self.life = Life::Sharing(None);
            self.share_out(None, server);
        }
    }

    /// Hands the other cores their shards. When all have taken them over, tells them the accounts.
    fn share_out(&mut self, owners: Option<Owners>, server: &mut Server) {
        let Parts { store, links, .. } = &mut server.parts;
        let Some(owners) = owners.or_else(|| store.share_out(links.cores())) else { return };
        self.life = Life::Sharing(Some(owners));
        if store.is_taken_over(owners) {
            let shown = server.services.certificates.shown();
            links.tell_others(Class::Answer, || Message::Certificates(Arc::clone(shown)));
            store.tell_accounts(owners);
            self.begin_passwords(server);
        }
    }

    /// Begins to make passwords, once this core knows all accounts.
    pub(crate) fn begin_passwords(&mut self, server: &mut Server) {
        self.accounts.begin_passwords(&mut setup_context(&mut server.parts));
        self.life = Life::Assembling;
        self.serve_when_ready(server);
    }

    /// Begins to listen when the new accounts of all cores are ready or take too long.
    fn serve_when_ready(&mut self, server: &mut Server) {
        let Parts { store, console, directory, hostname, turn, .. } = &mut server.parts;
        if !self.accounts.may_listen(turn.now) || !store.report_ready() {
            return;
        }
        if self.core == CoreId::FIRST {
            console.print(format_args!("serving {directory} as {hostname}"));
        }
        self.listen(server);
    }

    /// Begins to accept clients.
    fn listen(&mut self, server: &mut Server) {
        server.let_certificates(Certificates::judge);
        let Server { parts: Parts { store, directory, connections, .. }, services, .. } = server;
        let disk_bytes = store.own.store.disk_bytes();
        store.own.store.set_quotas(|address| directory.quota(address).octets(disk_bytes));
        for (index, service) in SERVICES.iter().enumerate() {
            let number = Service(index as u8);
            if service.security == Security::Implicit && !connections.tls().serves(number) {
                continue;
            }
            let listening = connections.listen(service.port, number);
            assert!(listening, "there are fewer services than listeners");
        }
        services.submission.begin();
        services.outbound.begin();
        self.life = Life::Serving;
    }

    pub(crate) fn begin_stopping(&mut self, server: &mut Server) {
        let Parts { connections, store, console, turn, .. } = &mut server.parts;
        console.print(format_args!(
            "stopping: closing {} connections",
            connections.net().connection_count()
        ));
        if self.core == CoreId::FIRST {
            store.tell_to_stop();
        }
        SERVICES.iter().for_each(|service| connections.stop_listening(service.port));
        self.health.stop();
        self.life = Life::Stopping { until: turn.now + FAREWELL };
        server.stop_services();
        server.let_sessions(|sessions, cx| sessions.tell_all(cx, Session::stopping));
    }

    fn leave_without_connections(&mut self, until: Instant, server: &mut Server) {
        let now = server.parts.turn.now;
        let is_only_idle = now >= grace_until(until) && have_all_acknowledged(&server.parts);
        if is_without_connections(&server.parts) || is_only_idle || now >= until {
            server.let_sessions(|sessions, cx| sessions.tell_all(cx, Session::deadline_expired));
            self.life = Life::Leaving { until: now + REST };
        }
    }

    fn leave_with_nothing_left(&mut self, until: Instant, server: &mut Server) {
        let now = server.parts.turn.now;
        if has_nothing_left(server) || now >= until {
            server.let_sessions(|sessions, cx| {
                sessions.tell_all(cx, |session, cx| {
                    cx.parts.connections.reset(session.caller.connection)
                })
            });
            self.print_statistics(&mut server.parts);
            server.parts.store.leave_others();
            // The other cores were told to stop at the same time, and may have more work.
            let patience =
                if self.core == CoreId::FIRST { FAREWELL + REST + REST } else { FAREWELL + REST };
            self.life = Life::AwaitingOthers { until: now + patience };
        }
    }

    /// Prints how the TLS handshakes of this core ended. With several cores, also prints the core's
    /// part of the load.
    fn print_statistics(&self, parts: &mut Parts) {
        let Parts { connections, console, links, .. } = parts;
        if !links.is_alone() {
            announce_share(self.core, connections.net(), console);
        }
        let outcomes = connections.tls().outcomes();
        if *outcomes != Handshakes::default() {
            console.print(format_args!("{}: {outcomes}", self.core));
        }
    }

    /// Stops this core when no other core may send it a request. So the first core, which has the
    /// disk, stops last. Each core has printed its statistics in an earlier turn, since the machine
    /// may be off after the turn in which the first core stops.
    fn stop_after_others(&mut self, until: Instant, parts: &mut Parts, sending: &Sending) {
        let has_no_parcels_away = sending.under_way() == 0;
        if !(has_no_parcels_away && parts.store.is_last()) && parts.turn.now < until {
            return;
        }
        if self.core == CoreId::FIRST {
            parts.console.print(format_args!("stopped"));
        } else {
            parts.store.leave_first();
            parts.links.tell_others(Class::Hearsay, || Message::Over);
        }
        self.life = Life::Stopped(Ending::Asked);
    }
}

fn setup_context(parts: &mut Parts) -> SetupContext<'_> {
    let Parts { turn, store, console, compute, .. } = parts;
    SetupContext { turn: *turn, store, compute, console }
}

/// Whether all clients have everything, and all started work has ended.
fn has_nothing_left(server: &Server) -> bool {
    let Server { parts, services, .. } = server;
    have_all_acknowledged(parts)
        && parts.store.is_at_rest()
        && parts.links.unanswered() == 0
        && services.in_flight() == 0
}

/// Whether all clients have acknowledged the end of their connections.
fn have_all_acknowledged(parts: &Parts) -> bool {
    parts.connections.net().has_delivered_all()
}

/// The end of [`GRACE`]. `until`: the end of [`FAREWELL`].
fn grace_until(until: Instant) -> Instant {
    until - Micros(FAREWELL.0 - GRACE.0)
}

fn is_without_connections(parts: &Parts) -> bool {
    parts.connections.net().connection_count() == 0
}
