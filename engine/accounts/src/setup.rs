//! The setup of the configured accounts: first the accounts themselves (`provisioning`), then their
//! passwords (`passwords`).

use alloc::sync::Arc;

use configuration::Configuration;
use machine::{Entropy, Instant};
use store::Outcome;
use tasks::Continuation;

use crate::passwords::PasswordSetup;
use crate::provisioning::{Provisioning, SetupContext};
use crate::wait_points::SetupWaitPoint;

/// The setup of a core's accounts.
pub struct AccountSetup {
    /// `None` once all is done, so that no plain password stays in memory longer than needed.
    configuration: Option<Arc<Configuration>>,
    provisioning: Provisioning,
    passwords: PasswordSetup,
}

impl AccountSetup {
    /// The setup of the accounts of a configuration.
    pub fn of(configuration: &Arc<Configuration>) -> AccountSetup {
        AccountSetup {
            configuration: Some(Arc::clone(configuration)),
            provisioning: Provisioning::default(),
            passwords: PasswordSetup::default(),
        }
    }

    /// Creates and changes accounts, on the first core. Returns whether this is complete.
    /// `certificates`: the address of the account for certificates, if it is needed and does not
    /// exist.
    #[inline(never)]
    pub fn provision(
        &mut self,
        certificates: Option<&'static str>,
        cx: &mut SetupContext<'_>,
    ) -> bool {
        let Some(configuration) = &self.configuration else { return true };
        self.provisioning.go_on(configuration, certificates, cx)
    }

    /// Begins with the passwords of this core's accounts, after they were created.
    pub fn begin_passwords(&mut self, cx: &mut SetupContext<'_>) {
        cx.compute.make_room_for(cx.store.password_hashes());
        if let Some(configuration) = &self.configuration {
            self.passwords.begin(configuration, cx);
        }
    }

    /// Does the next step for the passwords.
    pub fn make_passwords(&mut self, cx: &mut SetupContext<'_>, entropy: &mut dyn Entropy) {
        let Some(configuration) = &self.configuration else { return };
        self.passwords.go_on(configuration, cx, entropy);
        if self.passwords.is_over() {
            self.configuration = None;
        }
    }

    /// Whether all accounts and passwords are made and checked.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.configuration.is_none()
    }

    /// Whether this core is ready to listen: its new accounts are ready, or they take too long.
    pub fn may_listen(&self, now: Instant) -> bool {
        self.passwords.may_listen(now)
    }

    /// Processes an outcome of the store. After it, the sessions of accounts with a changed
    /// password must be ended ([`shards::ShardedStore::next_outdated`]).
    pub fn woken(&mut self, at: Continuation, outcome: Outcome, cx: &mut SetupContext<'_>) {
        match SetupWaitPoint::of(at.entry) {
            Some(SetupWaitPoint::Changed) => self.provisioning.woken(at.frame, outcome, cx),
            Some(SetupWaitPoint::PasswordSet) => self.passwords.woken(outcome, cx),
            Some(SetupWaitPoint::PasswordHashed) | None => {
                unreachable!("the store does not hash passwords")
            }
        }
    }

    /// Whether [`AccountSetup::provision`] has work that no event announces.
    pub fn can_provision(&self, now: Instant) -> bool {
        self.provisioning.is_to_go_on(now)
    }

    /// Whether [`AccountSetup::make_passwords`] has work that no event announces.
    pub fn can_make_passwords(&self) -> bool {
        self.passwords.is_to_go_on()
    }

    /// The time at which a turn is needed even without an event.
    #[inline]
    pub fn next_deadline(&self, now: Instant) -> Instant {
        if self.is_over() {
            return Instant::NEVER;
        }
        self.deadline_of_setup(now)
    }

    #[inline(never)]
    fn deadline_of_setup(&self, now: Instant) -> Instant {
        Instant::or_never(self.provisioning.again_at()).min(self.passwords.next_deadline(now))
    }
}
