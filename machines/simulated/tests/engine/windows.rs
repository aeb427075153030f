//! Two windows of one user that send requests at the same time: each keeps its own message, and
//! each reports and undoes its own actions.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;

use super::draft_files::draft;
use super::room::Room;
use super::webmail::{Browser, between, message, serving};

const ROUNDS: usize = 16;

/// A browser window, and the key of its draft.
struct Window {
    browser: Browser,
    draft: String,
}

impl Window {
    /// Requests an action for the window's message, and does not wait for the response.
    fn begin(&mut self, room: &mut Room, token: &str, text: &str, what: &str) {
        let form = [
            ("token", token),
            ("draft", &self.draft),
            ("to", "grace@barepost.test"),
            ("subject", text),
            ("text", text),
            ("do", what),
        ];
        self.browser.begin(room, "/mail/compose", &form);
    }

    /// Checks that the message was saved, because the next page contains it.
    fn assert_saved(&mut self, room: &mut Room, text: &str, when: &str) {
        let answer = self.browser.finish(room);
        assert_eq!(answer.status, 303, "{}", answer.text());
        let page = self.browser.get(room, answer.field("Location")).text();
        assert!(
            page.contains(&format!("value=\"{text}\"")) && page.contains(&format!("{text}\n")),
            "{when}: {page}"
        );
        self.draft = draft(&page).to_string();
    }
}

fn drafts(room: &mut Room, window: &mut Window) -> String {
    window.browser.get(room, "/mail/box/2").text()
}

#[test]
fn two_windows_keep_their_own_drafts() {
    for seed in [350, 351] {
        let (mut room, trust) = serving(seed);
        let mut windows =
            [(); 2].map(|()| Window { browser: Browser::new(&trust), draft: String::new() });
        let [first, second] = &mut windows;
        first.browser.log_in(&mut room, "ada", "lovelace");
        second.browser.cookie.clone_from(&first.browser.cookie);
        let [token, _] =
            [first, second].map(|window| window.browser.get(&mut room, "/mail/compose").token());
        let mut texts = [String::new(), String::new()];
        for round in 0..ROUNDS {
            texts = ["First", "Second"].map(|name| format!("{name} {round}"));
            for (window, text) in windows.iter_mut().zip(&texts) {
                window.begin(&mut room, &token, text, "save");
                (0..round / 2).for_each(|_| room.step());
            }
            // The test reads the responses in both orders, because requests are not always handled
            // in the order of sending.
            for number in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                windows[number].assert_saved(
                    &mut room,
                    &texts[number],
                    &format!("round {round}, seed {seed}"),
                );
            }
            let list = drafts(&mut room, &mut windows[0]);
            assert!(
                list.contains("1–2 of 2") && texts.iter().all(|text| list.contains(text)),
                "{list}"
            );
        }

        // One message is sent while the other one is saved.
        let [first, second] = &mut windows;
        first.begin(&mut room, &token, &texts[0], "send");
        second.begin(&mut room, &token, "Second at last", "save");
        second.assert_saved(&mut room, "Second at last", "while the other is sent");
        assert_eq!(first.browser.finish(&mut room).status, 303);
        room.pass(Micros::from_secs(12));
        let list = drafts(&mut room, second);
        assert!(list.contains("1–1 of 1") && list.contains("Second at last"), "{list}");
        let mut grace = Browser::new(&trust);
        grace.log_in(&mut room, "grace", "lovelace");
        let list = grace.get(&mut room, "/mail/box/1").text();
        assert!(list.contains("1–1 of 1") && list.contains(&texts[0]), "{list}");
        grace.hang_up(&mut room);
        windows.iter_mut().for_each(|window| window.browser.hang_up(&mut room));
        room.until_nothing_is_in_use();
    }
}

/// The key that a page has for an undo.
fn undo(page: &str) -> Option<&str> {
    between(page, "name=\"what\" value=\"", "\"")
}

#[test]
fn each_window_reports_and_undoes_its_own_actions() {
    for seed in [352, 353] {
        let (mut room, trust) = serving(seed);
        for subject in ["First", "Second"] {
            assert!(
                room.deliver("ada@barepost.test", &message(subject, "It computes."))
                    .starts_with("250")
            );
        }
        let mut windows = [(); 3].map(|()| Browser::new(&trust));
        windows[0].log_in(&mut room, "ada", "lovelace");
        let cookie = windows[0].cookie.clone();
        windows.iter_mut().for_each(|window| window.cookie.clone_from(&cookie));
        let [first, second, third] = &mut windows;
        let token = first.get(&mut room, "/mail/box/1").token();
        let form = |key| {
            [("token", token.as_str()), ("here", "/mail/box/1"), ("key", key), ("do", "archive")]
        };
        let [first_result, second_result] =
            [(&mut *first, "1.1"), (&mut *second, "1.2")].map(|(window, key)| {
                let answer = window.send(&mut room, "/mail/act", &form(key));
                assert_eq!(answer.status, 303, "{}", answer.text());
                answer.field("Location").to_string()
            });
        assert_eq!(
            undo(&third.get(&mut room, "/mail/box/1").text()),
            None,
            "this window has done nothing"
        );
        assert_eq!(undo(&second.get(&mut room, &second_result).text()), Some("4.2-2.1"));
        let page = first.get(&mut room, &first_result).text();
        assert_eq!(undo(&page), Some("4.1-1.1"), "{page}");
        assert!(
            page.contains("name=\"here\" value=\"/mail/box/1\""),
            "the page shows the same mailbox: {page}"
        );
        assert_eq!(
            undo(&first.get(&mut room, &first_result).text()),
            None,
            "a notice is shown once"
        );
        let back =
            first.post(&mut room, "/mail/undo", &[("token", &token), ("what", "4.1-1.1")]).text();
        assert!(back.contains("First") && !back.contains("Second"), "{back}");
        windows.iter_mut().for_each(|window| window.hang_up(&mut room));
        room.until_nothing_is_in_use();
    }
}
