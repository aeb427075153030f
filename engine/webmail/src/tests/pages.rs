//! Renders all pages with the texts of a test.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{
    Attachment, ComposePage, ConversationMessage, ConversationPage, Density, Escaped, FlashNotice,
    HoldTime, KindNotice, ListPage, ListRow, Loads, LoginPage, MailboxLink, MailboxesPage,
    MessageBody, OwnMailbox, PageFrame, PrintPage, Prose, QueuePage, QueueRow, QuotaMeter,
    RefusedPage, RowTarget, SessionLine, SettingsPage, SourcePage, Template, Theme, TlsRow,
};

/// The values for the templates.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// The text in place of all texts from messages and users.
    pub(super) sample: &'static str,
    /// The session's token.
    pub(super) token: &'static str,
    /// The key of each message.
    pub(super) key: &'static str,
    /// The address of each page.
    pub(super) here: &'static str,
}

impl Words {
    pub(super) const MILD: Words =
        Words { sample: "Grace", token: "t0ken", key: "1.7", here: "/mail/box/1" };

    pub(super) fn all(sample: &'static str) -> Words {
        Words { sample, token: sample, key: sample, here: sample }
    }
}

/// The name and the HTML of each page.
pub(super) fn all(words: Words) -> Vec<(&'static str, String)> {
    let Words { sample, token, key, here } = words;
    let mailboxes = [
        MailboxLink { id: 1, name: "Inbox", unseen: 3, is_open: true },
        MailboxLink { id: 16, name: sample, unseen: 0, is_open: false },
    ];
    let notice =
        Some(FlashNotice { text: sample, is_error: false, undo: Some(sample), seconds: Some(10) });
    let frame = PageFrame {
        address: sample,
        token,
        theme: Theme::Auto,
        density: Density::Compact,
        zone: sample,
        search: sample,
        mailboxes: &mailboxes,
        meter: Some(QuotaMeter { taken: sample, allowed: sample, percent: 95 }),
        notice,
        is_administrator: true,
    };
    let rows = [true, false].map(|is| ListRow {
        key: Escaped(key),
        href: Escaped("/mail/message/a1.7"),
        target: RowTarget::Conversation,
        people: Escaped(sample),
        messages: 2,
        subject: Escaped(sample),
        snippet: Escaped(sample),
        date: Escaped(sample),
        moment: Escaped(sample),
        is_unread: is,
        is_starred: is,
        is_answered: is,
        has_attachment: is,
    });
    let rows = rows.map(|row| row.written());
    let list = ListPage {
        frame,
        title: sample,
        here,
        list: "?list=%2Fmail%2Fsearch%3Fq%3D",
        rows: &rows,
        extent: sample,
        progress: Some(sample),
        newer: Some("/mail/box/1?after=0.2a.7"),
        older: Some("/mail/box/1?before=0.2a.7"),
        is_trash: false,
        is_outbox: false,
        is_junk: false,
        is_grouped: true,
        last_uid: 0,
    };
    let attachments = [Attachment { name: sample, size: sample, href: "/mail/part/1.7/2" }];
    let warnings = [String::from(sample)];
    let fact = (String::from(sample), String::from(sample));
    let notices = [KindNotice { words: sample.into(), facts: [fact].into() }];
    let html = MessageBody::Html { source: "/mail/html/1.7/1", whole: Some("/mail/whole/1.7/1") };
    let text = MessageBody::Text(Prose(sample));
    let bodies = [&[MessageBody::Folded][..], &[text], &[html], &[text, html, text], &[]];
    let people = [("To", String::from(sample))];
    let messages = bodies.map(|bodies| ConversationMessage {
        key,
        href: "/mail/box/1/7",
        from: sample,
        address: sample,
        to: sample,
        people: &people,
        date: sample,
        moment: sample,
        sent: Some([sample; 2]),
        snippet: sample,
        is_starred: true,
        is_asked_for: false,
        is_unread: false,
        warnings: &warnings,
        notices: &notices,
        loads: Loads::Nothing,
        bodies,
        attachments: &attachments,
    });
    let conversation = ConversationPage {
        frame,
        subject: sample,
        back: "/mail/box/1",
        here,
        key,
        is_outbox: false,
        is_cut: true,
        messages: &messages,
    };
    let compose = ComposePage {
        frame,
        title: sample,
        draft: sample,
        answers: sample,
        to: sample,
        cc: sample,
        bcc: sample,
        subject: sample,
        text: sample,
        attachments: &[(2, sample)],
        is_unsaved: false,
        error: Some(sample),
    };
    let sessions = [true, false].map(|is_this| SessionLine {
        key: sample,
        program: sample,
        since: sample,
        is_this,
    });
    let settings = SettingsPage {
        frame,
        name: sample,
        signature: sample,
        hold: HoldTime::Short,
        zone: sample,
        sessions: &sessions,
    };
    let own = [16, 17].map(|id| OwnMailbox { id, name: sample, messages: id - 16 });
    let mailboxes = MailboxesPage { frame, own: &own, refused: sample };
    let row = |is_held, is_under_way, number| QueueRow {
        key: format!("{number:016x}.7"),
        sender: sample.into(),
        recipients: sample.into(),
        state: sample.into(),
        facts: sample.into(),
        last_result: sample.into(),
        is_held,
        is_under_way,
        is_readable: number != 3,
        is_left_alone: number == 3,
    };
    let waiting = [row(false, false, 1), row(true, false, 2), row(false, true, 3)];
    let tls = [TlsRow {
        domain: sample.into(),
        day: "today",
        policy: "sts",
        sessions: 1,
        failures: sample.into(),
    }];
    let queue = QueuePage {
        frame,
        counts: sample,
        here,
        rows: &waiting,
        is_later: true,
        next: Some("/mail/queue?after=0000000000000003.7"),
        tls: &tls,
    };
    let source = SourcePage {
        frame,
        subject: sample,
        back: "/mail/box/1/7",
        download: "/mail/download/1.7",
        octets: sample,
        is_cut: true,
    };
    let print = PrintPage {
        address: sample,
        subject: sample,
        back: "/mail/box/1/7",
        is_cut: true,
        messages: &messages,
    };
    let login = LoginPage {
        host: sample,
        name: sample,
        next: sample,
        notice: Some(sample),
        error: Some(sample),
        draft: sample,
    };
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
        ("refused", RefusedPage { title: sample, words: sample }.render()),
    ]
    .into_iter()
    .map(|(name, page)| (name, page.expect("a page")))
    .collect()
}
