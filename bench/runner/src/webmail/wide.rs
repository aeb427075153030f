//! A wide-area network between the browser and both webmails. A wire program (`tests/wire`) that
//! delays frames is inserted while the guests serve.

use std::time::Duration;

use host::{Failure, Repository, Stop, remark};

use super::browser::Question;
use super::reader::{Login, Reader};
use super::target::Target;
use crate::beside::Side;
use crate::beside::mailboxes::{GRACE, INBOXES, READER, WRITER, inbox, number};
use crate::goodput::Wire;
use crate::statistics::median;

/// The round-trip time in milliseconds.
pub(super) const ROUND_MS: u32 = 20;
const TIMES: usize = 3;
/// Text sizes, in bytes, of messages that a user reads and sends.
pub(super) const BYTES: [usize; 4] = [1_000, 16_000, 40_000, 120_000];

/// An action of a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RemoteAction {
    LoginPage,
    Login,
    Inbox(usize),
    Read(usize),
    Send(usize),
}

/// The duration of an action at each webmail: the median, in milliseconds.
pub(super) struct Far {
    pub(super) action: RemoteAction,
    pub(super) ours: f64,
    pub(super) peers: f64,
}

/// Measures each action at both webmails over the wide-area network. Call this in the guests'
/// network namespace. It moves the host's addresses behind the wires, so the host cannot reach the
/// guests afterwards.
pub(super) fn measure(
    repository: &Repository,
    targets: &[Target<'_>; 2],
    stop: &Stop,
) -> Result<Vec<Far>, Failure> {
    let wire = Wire::build(repository, stop)?;
    let delay = format!("delay={}", ROUND_MS / 2);
    [Side::Ours, Side::Peer].into_iter().try_for_each(Side::withdraw)?;
    // The wires last until these values are dropped.
    let (_ours, _peers) = (Side::Ours.wire(&wire, &delay)?, Side::Peer.wire(&wire, &delay)?);
    let messages = INBOXES.first().copied().unwrap_or_default();
    let actions = [RemoteAction::LoginPage, RemoteAction::Login, RemoteAction::Inbox(messages)]
        .into_iter()
        .chain(BYTES.map(RemoteAction::Read))
        .chain(BYTES.map(RemoteAction::Send));
    let mut found = Vec::new();
    for action in actions {
        let [ours, peers] = targets;
        let far = Far { action, ours: ours.far(action)?, peers: peers.far(action)? };
        remark(format_args!(
            "{ROUND_MS} ms there and back, {action:?}: {:.1} ms beside {:.1}",
            far.ours, far.peers
        ));
        found.push(far);
    }
    Ok(found)
}

impl Target<'_> {
    fn far(&self, action: RemoteAction) -> Result<f64, Failure> {
        let took = match action {
            RemoteAction::LoginPage | RemoteAction::Login => {
                (0..TIMES).map(|_| self.far_login(action)).collect::<Result<Vec<_>, _>>()?
            }
            RemoteAction::Inbox(messages) => {
                self.far_work(&inbox(messages), |reader| Ok(reader.inbox()))?
            }
            RemoteAction::Read(bytes) => {
                self.far_work(READER, |reader| Ok(vec![reader.message(number(bytes))]))?
            }
            RemoteAction::Send(bytes) => self.far_work(WRITER, |writer| {
                let begun = writer.begin_message()?;
                Ok(writer.send(&begun, GRACE, bytes, None))
            })?,
        };
        Ok(median(took.iter().map(|time| time.as_secs_f64() * 1000.0).collect()))
    }

    /// Measures one request of a login on a connection that is already open.
    fn far_login(&self, action: RemoteAction) -> Result<Duration, Failure> {
        let mut login = Login::begin(self.side, self.address, &self.settings)?;
        let question =
            if action == RemoteAction::Login { login.form(WRITER) } else { Login::page(self.side) };
        login.browser.ask_all(&[question])
    }

    /// Measures an action several times. `prepare` makes the requests of each repetition.
    fn far_work(
        &self,
        name: &str,
        prepare: impl Fn(&mut Reader) -> Result<Vec<Question>, Failure>,
    ) -> Result<Vec<Duration>, Failure> {
        let mut reader = self.log_in(name)?;
        let mut once = || {
            let questions = prepare(&mut reader)?;
            reader.browser.ask_all(&questions)
        };
        (0..TIMES).map(|_| once()).collect()
    }
}
