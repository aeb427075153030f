//! The seals of letters that are sent on: what was found out about a letter when it came is said to who gets it, by a set of fields that our domain signs (ARC, crate `dkim`).
//!
//! Who gets it sees our address where the letter's own domain does not let us send, and maybe a changed letter, if somebody before us has changed it: what proved whose it is may be gone.
//! Before such a message is put into the outbox for its first forwarding address, it is read once
//! and hashed. Then two signatures are computed, as those under messages of our
//! own users are (`signing`). It is done once for all to whom it goes, and again if the power fails meanwhile.
//!
//! Not sealed is:
//! - a letter about which nothing was found out, since our own users have written it, or it came from a network of ours, or nobody could be asked: there would be nothing to say;
//! - one whose chain has failed, or could not be looked at: who gets it sees that for himself;
//! - one that was sealed here before, for another account: nothing has changed since.
//!
//! Invariant: of a letter no more is in memory than its header, and a part as the store reads it.

use alloc::boxed::Box;

use accounts::entries::domain_of;
use dkim::{ChainVerdict, Reading, Sealing};
use dns::Name;
use store::Refusal;

use super::Point;
use super::attempt::AttemptCx;
use super::courier::Courier;
use super::forwarding::OWN;
use super::seal::{Found, Seal, Unsealed};
use super::stages::{Stage, Way};

impl Courier {
    /// Hashes what was read, or reads on, if the letter is to be sealed.
    pub(super) fn hash(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        if matches!(self.seal, Seal::Unknown) {
            let found = self.found(cx).filter(|_| cx.parts.signer.sealing_key().is_some());
            self.seal = found.map_or(Seal::NOTHING, |found| Seal::Hashing(Box::new(Reading::to_sign()), found));
            self.rewind();
        }
        let Seal::Hashing(reading, _) = &mut self.seal else {
            self.stage = Stage::Sorted;
            return Ok(());
        };
        reading.arrived(&core::mem::take(&mut self.reader.rest));
        if !self.read_on(cx)? {
            self.hashed(cx);
        }
        Ok(())
    }

    /// All of the letter was read.
    fn hashed(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let domain = Name::of_bytes(domain_of(self.address(OWN)).as_bytes());
        let Seal::Hashing(reading, found) = core::mem::replace(&mut self.seal, Seal::NOTHING) else { return };
        let message = reading.ended();
        let sealing = Sealing::begin(&message, found.chain, &found.results);
        self.stage = Stage::Sorted;
        if let (Ok(sealing), Ok(domain)) = (sealing, domain) {
            let mut unsealed = Box::new(Unsealed { message, sealing, domain, job: None });
            if unsealed.ask(cx.continuation(Point::Signed), cx.parts) {
                self.seal = Seal::Signing(unsealed);
                self.stage = Stage::Sealed;
            }
        }
    }

    /// It cannot be read: without a seal it may go as far as it comes.
    pub(super) fn leave_unsealed(&mut self) {
        (self.seal, self.stage) = (Seal::NOTHING, Stage::Sorted);
    }

    /// The signature that was asked for was computed.
    pub(super) fn signature_made(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        let (Stage::Sealed, Seal::Signing(unsealed)) = (self.stage, &mut self.seal) else { return self.go_on(cx) };
        if unsealed.take_signature(cx.parts.compute)
            && unsealed.sealing.is_open()
            && unsealed.ask(cx.continuation(Point::Signed), cx.parts)
        {
            return Way::Waits;
        }
        // A letter that cannot be signed goes without: empty as long as not all is there.
        self.seal = Seal::Made(unsealed.sealing.fields());
        (self.stage, self.wait.is_waiting) = (Stage::Sorted, false);
        self.go_on(cx)
    }

    fn found(&self, cx: &AttemptCx<'_, '_>) -> Option<Found> {
        found_in(&self.entry.as_ref()?.header, cx.queue.config.hostname())
    }
}

/// What we have found out about a letter, as its first field says, of which nobody else may write one that names us (`message::Revision`).
fn found_in(header: &[u8], hostname: &str) -> Option<Found> {
    let ends = memchr::memmem::find_iter(header, b"\r\n");
    let end = ends.into_iter().find(|end| !matches!(header.get(end + 2), Some(b' ' | b'\t')))?;
    let field = core::str::from_utf8(header.get(..end)?).ok()?;
    let results = field.strip_prefix("Authentication-Results: ")?;
    let (host, found) = results.split_once(";\r\n\t")?;
    let chain = found.split(";\r\n\t").find_map(|result| result.strip_prefix("arc="))?;
    let chain = match chain.split(' ').next()? {
        "none" => ChainVerdict::None,
        "pass" => ChainVerdict::Pass,
        _ => return None,
    };
    (host == hostname).then(|| Found { results: results.into(), chain })
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn what_we_have_found_out_is_known_by_our_name_in_the_first_field_and_nothing_else_counts() {
        let found = |header: &str| found_in(header.as_bytes(), "mail.test").map(|found| (found.results, found.chain));
        let ours = "mail.test;\r\n\tspf=pass;\r\n\tarc=pass smtp.remote-ip=192.0.2.7";
        let field = ["Authentication-Results: ", ours, "\r\n"].concat();
        assert_eq!(found(&[&field, "Subject: a\r\n"].concat()), Some((ours.into(), ChainVerdict::Pass)));
        let without = field.replace("arc=pass", "arc=none");
        assert_eq!(found(&without).map(|(_, chain)| chain), Some(ChainVerdict::None));
        for other in [
            field.replace("mail.test", "mail.other"),
            field.replace("arc=pass", "arc=fail"),
            field.replace("\r\n\tarc=pass smtp.remote-ip=192.0.2.7", "\r\n\tdkim=none"),
            ["Subject: a\r\n", &field].concat(),
            String::new(),
        ] {
            assert_eq!(found(&other), None, "{other}");
        }
    }
}
