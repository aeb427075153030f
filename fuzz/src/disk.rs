//! The store on any disk: a small valid image, made once by the store itself, with changes from the
//! fuzzer's bytes.
//!
//! Some changes to fields get new checksums under the disk's own key. Without them the store would
//! detect every change by its hash. Other changes keep the old checksums, like damage on a real
//! disk.
//!
//! Oracles: opening never panics and ends after a bounded number of reads. A refused disk is never
//! written to. Each read of a listed message ends. On a disk that serves, new mail is stored, reads
//! back unchanged, and survives a restart. The check of a disk also ends.

mod change;
mod image;
mod rig;
mod seal;

use std::cell::OnceCell;

use arbitrary::{Arbitrary, Unstructured};
use store::{INBOX, State};

use change::Change;
use image::Image;
use rig::{Rig, Stopped};

#[derive(Arbitrary, Debug)]
struct Input {
    start: Beginning,
    changes: Vec<Change>,
    /// The sectors that cannot be read.
    unreadable: Vec<u16>,
    /// The sizes of the messages that are stored on a disk that serves, in units of 200 bytes. Each
    /// number also selects the account.
    mail: [u8; 3],
}

/// The image before the changes.
#[derive(Arbitrary, Clone, Copy, PartialEq, Eq, Debug)]
enum Beginning {
    Valid,
    Blank,
    /// Every page begins with these bytes.
    Raw([u8; 16]),
}

thread_local! {
    static IMAGE: OnceCell<Image> = const { OnceCell::new() };
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    IMAGE.with(|image| attempt(image.get_or_init(Image::make), &input));
}

fn attempt(valid: &Image, input: &Input) {
    let mut image = match input.start {
        Beginning::Valid => valid.clone(),
        Beginning::Blank => Image::blank(),
        Beginning::Raw(bytes) => Image::filled(&bytes),
    };
    for change in input.changes.iter().take(24) {
        change.apply(&mut image, valid);
    }
    seal::renew(&mut image);
    let unreadable: Vec<u64> =
        input.unreadable.iter().take(8).map(|sector| u64::from(*sector)).collect();
    check_offline(&image, &unreadable);
    let before = image.clone();
    let mut rig = Rig::open(image, unreadable, 1);
    if let State::Refused(_) = rig.store.state() {
        assert!(
            rig.writes == 0 && *rig.image() == before,
            "a disk that is refused is not written to"
        );
        return;
    }
    read_everything(&mut rig);
    if rig.store.state() == State::Serving {
        use_and_reopen(rig, input.mail);
    }
}

fn check_offline(image: &Image, unreadable: &[u64]) {
    let report =
        store::fsck(&mut rig::Offline { image, unreadable, reads_left: rig::REQUESTS_MAX });
    assert!(report.refused.is_none() || report.accounts.is_empty());
}

/// Reads the messages that the index lists. Each read must end.
fn read_everything(rig: &mut Rig) {
    let accounts: Vec<_> = rig.store.accounts().map(|account| account.id()).take(8).collect();
    for account in accounts {
        let messages: Vec<_> = rig.store.messages(account, INBOX).take(20).collect();
        for message in messages {
            // A wrong size in the index can make a body very long. Its start is enough.
            let _ = rig.read(account, &message);
        }
    }
}

/// Stores new messages, and checks them before and after a restart.
fn use_and_reopen(mut rig: Rig, mail: [u8; 3]) {
    let mut kept = Vec::new();
    for (number, size) in (0_u8..).zip(mail) {
        let Ok(account) = rig.account(&format!("new{}@barepost.test", size % 4)) else { continue };
        let body = vec![number.wrapping_add(size); usize::from(size) * 200];
        let before = rig.uids(account);
        if rig.deliver(account, &body).is_ok() {
            let uid = rig.uids(account).into_iter().find(|uid| !before.contains(uid));
            kept.push((account, uid.expect("a delivered message has a new UID"), body));
        }
    }
    let check = |rig: &mut Rig| {
        for (account, uid, body) in &kept {
            let message =
                rig.store.message(*account, INBOX, *uid).expect("an acknowledged message exists");
            assert_eq!(message.octets as usize, body.len());
            match rig.read(*account, &message) {
                Ok(read) => assert!(read == *body, "a message is read as it was stored"),
                Err(Stopped::Refused(refusal)) => {
                    panic!("an acknowledged message is refused: {refusal:?}")
                }
                Err(Stopped::Long) => panic!("a body longer than its message"),
            }
        }
    };
    check(&mut rig);
    let (image, unreadable) = rig.power_off();
    let mut rig = Rig::open(image, unreadable, 2);
    assert_eq!(rig.store.state(), State::Serving, "a disk that served also serves after a restart");
    check(&mut rig);
}
