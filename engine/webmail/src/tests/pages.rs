//! Renders all pages with the texts of a test.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{
    Attachment, ComposePage, ConversationMessage, ConversationPage, Density, Escaped, FlashNotice,
    HoldTime, ListPage, ListRow, Loads, LoginPage, MailboxLink, MailboxesPage, MessageBody,
    OwnMailbox, PageFrame, PrintPage, Printed, Prose, QueuePage, QueueRow, QuotaMeter, RefusedPage,
    SessionLine, SettingsPage, SourcePage, Template, Theme, TlsRow,
};

/// The values for the templates.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// The text in place of all texts from messages and users.
    pub(super) said: &'static str,
    /// The session's token.
    pub(super) token: &'static str,
    /// The key of each message.
    pub(super) key: &'static str,
    /// The address of each page.
    pub(super) here: &'static str,
}

impl Words {
    pub(super) const MILD: Words =
        Words { said: "Grace", token: "t0ken", key: "1.7", here: "/mail/box/1" };

    pub(super) fn all(said: &'static str) -> Words {
        Words { said, token: said, key: said, here: said }
    }
}

/// The name and the HTML of each page.
pub(super) fn all(words: Words) -> Vec<(&'static str, String)> {
    let Words { said, token, key, here } = words;
    let mailboxes = [
        MailboxLink { id: 1, name: "Inbox", unseen: 3, is_open: true },
        MailboxLink { id: 16, name: said, unseen: 0, is_open: false },
    ];
    let notice =
        Some(FlashNotice { text: said, is_error: false, undo: Some(said), seconds: Some(10) });
    let frame = PageFrame {
        address: said,
        token,
        theme: Theme::Auto,
        density: Density::Compact,
        search: said,
        mailboxes: &mailboxes,
        meter: Some(QuotaMeter { taken: said, allowed: said, percent: 95 }),
        notice,
        is_administrator: true,
    };
    let rows = [true, false].map(|is| ListRow {
        key: Escaped(key),
        href: Escaped("/mail/box/1/7"),
        people: Escaped(said),
        messages: 2,
        subject: Escaped(said),
        snippet: Escaped(said),
        date: Escaped(said),
        moment: Escaped(said),
        is_unread: is,
        is_starred: is,
        is_answered: is,
        has_attachment: is,
    });
    let rows = rows.map(|row| row.written());
    let list = ListPage {
        frame,
        title: said,
        here,
        rows: &rows,
        extent: said,
        progress: Some(said),
        newer: Some("/mail/box/1?after=7"),
        older: Some("/mail/box/1?before=7"),
        is_trash: false,
        is_junk: false,
        is_grouped: true,
    };
    let attachments = [Attachment { name: said, size: said, href: "/mail/part/1.7/2" }];
    let warnings = [String::from(said)];
    let html = MessageBody::Html {
        source: "/mail/html/1.7/1",
        loads: Loads::Nothing,
        whole: Some("/mail/whole/1.7/1"),
    };
    let messages = [MessageBody::Folded, MessageBody::Text(Prose(said)), html].map(|body| {
        ConversationMessage {
            key,
            href: "/mail/box/1/7",
            from: said,
            address: said,
            to: said,
            date: said,
            moment: said,
            snippet: said,
            is_starred: true,
            is_asked_for: false,
            is_unread: false,
            warnings: &warnings,
            body,
            attachments: &attachments,
        }
    });
    let conversation = ConversationPage {
        frame,
        subject: said,
        back: "/mail/box/1",
        here,
        key,
        is_cut: true,
        messages: &messages,
    };
    let compose = ComposePage {
        frame,
        title: said,
        draft: said,
        answers: said,
        to: said,
        cc: said,
        bcc: said,
        subject: said,
        text: said,
        attachments: &[(2, said)],
        error: Some(said),
    };
    let sessions =
        [true, false].map(|is_this| SessionLine { key: said, program: said, since: said, is_this });
    let settings = SettingsPage {
        frame,
        name: said,
        signature: said,
        hold: HoldTime::Short,
        sessions: &sessions,
    };
    let own = [16, 17].map(|id| OwnMailbox { id, name: said, messages: id - 16 });
    let mailboxes = MailboxesPage { frame, own: &own, refused: said };
    let row = |is_held, is_under_way, number| QueueRow {
        key: format!("{number:016x}.7"),
        sender: said.into(),
        recipients: said.into(),
        state: said.into(),
        facts: said.into(),
        last_result: said.into(),
        is_held,
        is_under_way,
        is_readable: number != 3,
        is_left_alone: number == 3,
    };
    let waiting = [row(false, false, 1), row(true, false, 2), row(false, true, 3)];
    let tls = [TlsRow {
        domain: said.into(),
        day: "today",
        policy: "sts",
        sessions: 1,
        failures: said.into(),
    }];
    let queue = QueuePage {
        frame,
        counts: said,
        here,
        rows: &waiting,
        is_later: true,
        next: Some("/mail/queue?after=0000000000000003.7"),
        tls: &tls,
    };
    let source = SourcePage {
        frame,
        subject: said,
        back: "/mail/box/1/7",
        download: "/mail/download/1.7",
        octets: said,
        is_cut: true,
    };
    let printed = Printed {
        from: said,
        address: said,
        to: said,
        date: said,
        moment: said,
        text: said,
        attachments: &[said],
    };
    let print = PrintPage {
        address: said,
        subject: said,
        back: "/mail/box/1/7",
        messages: &[printed, printed],
    };
    let login = LoginPage { host: said, name: said, next: said, error: Some(said), draft: said };
    [
        ("list", list.render()),
        ("an empty list", ListPage { rows: &[], is_trash: true, is_junk: true, ..list }.render()),
        ("conversation", conversation.render()),
        ("compose", compose.render()),
        ("settings", settings.render()),
        ("queue", queue.render()),
        ("an empty queue", QueuePage { rows: &[], next: None, tls: &[], ..queue }.render()),
        ("mailboxes", mailboxes.render()),
        ("source", source.render()),
        ("print", print.render()),
        ("login", login.render()),
        ("refused", RefusedPage { title: said, words: said }.render()),
    ]
    .into_iter()
    .map(|(name, page)| (name, page.expect("a page")))
    .collect()
}
