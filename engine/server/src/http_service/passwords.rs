//! A new password is made ready where the connection is: its hash behind the gate of all hashes, its verifier step by step, a turn each.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use sasl::Derivation;
use webmail::{NewPassword, PasswordMark, Secrets, Visit};

use crate::common::{Common, HASHER};
use crate::session::Caller;

/// A password of which is made what is kept.
pub(super) struct Making {
    new: Box<NewPassword>,
    /// The old one, which was proved.
    replaced: PasswordMark,
    /// Its hash, once its turn has come, and the verifier in the making.
    hashed: Option<(String, Derivation)>,
}

impl Making {
    /// The old password was right: the hash waits for its turn.
    pub(super) fn begin(new: Box<NewPassword>, replaced: PasswordMark, caller: Caller, common: &mut Common) -> Making {
        common.enter(HASHER, caller.connection.0);
        Making { new, replaced, hashed: None }
    }

    /// The session's turn has come. What the owner of the account is told once all is made.
    pub(super) fn step(&mut self, caller: Caller, common: &mut Common) -> Option<Visit> {
        let frame = caller.connection.0;
        match &mut self.hashed {
            None if !common.has_entered(HASHER, frame) => return None,
            None => {
                let (salt, verifier_salt) = (common.logins.salt(), common.logins.salt());
                let wanted = &self.new.wanted;
                let hash = core::str::from_utf8(wanted).ok().and_then(|wanted| common.logins.hash(wanted, salt));
                self.hashed = Some((hash.unwrap_or_default(), Derivation::begin(wanted, verifier_salt)));
                common.leave(HASHER, frame);
            }
            Some((hash, derivation)) => {
                if let Some(verifier) = derivation.step() {
                    let (hash, replaced) = (core::mem::take(hash), self.replaced);
                    let secrets = Secrets { hash, verifier: verifier.to_string(), replaced };
                    let NewPassword { ticket, token, .. } = &*self.new;
                    return Some(Visit::SetPassword(ticket.clone(), token.clone(), Ok(secrets)));
                }
            }
        }
        common.ready.resume(frame);
        None
    }
}
