//! Writes each page with sample mail into a folder, so that a developer can view the pages without
//! a server: `cargo run -p webmail --example pages -- FOLDER`

use std::path::Path;
use webmail::{
    Asset, Attachment, ComposePage, ConversationMessage, ConversationPage, Density, Escaped,
    FlashNotice, HoldTime, ListPage, ListRow, Loads, LoginPage, MailboxLink, MailboxesPage,
    MessageBody, OwnMailbox, PageFrame, PrintPage, Prose, QueuePage, QueueRow, QuotaMeter,
    RenderedRow, RowTarget, STYLE, SessionLine, SettingsPage, SourcePage, Template, Theme, TlsRow,
};

const MAILBOXES: [MailboxLink<'_>; 8] = [
    mailbox(1, "Inbox", 3, true),
    mailbox(2, "Drafts", 1, false),
    mailbox(3, "Sent", 0, false),
    mailbox(4, "Archive", 0, false),
    mailbox(5, "Junk", 12, false),
    mailbox(6, "Trash", 0, false),
    mailbox(16, "Bills", 0, false),
    mailbox(17, "Reisen", 0, false),
];

const fn mailbox(id: u32, name: &str, unseen: u32, is_open: bool) -> MailboxLink<'_> {
    MailboxLink { id, name, unseen, is_open }
}

fn frame(theme: Theme, notice: Option<FlashNotice<'static>>) -> PageFrame<'static> {
    PageFrame {
        address: "ada@barepost.test",
        token: "t0ken",
        theme,
        density: Density::Comfortable,
        zone: "Europe/London",
        search: "",
        mailboxes: &MAILBOXES,
        meter: Some(QuotaMeter { taken: "1.2 GB", allowed: "2 GB", percent: 60 }),
        notice,
        is_administrator: true,
    }
}

fn rows() -> Vec<RenderedRow> {
    let row = |people, messages, subject, snippet, date| ListRow {
        key: Escaped("1.7"),
        href: Escaped("/mail/message/a1.7"),
        target: RowTarget::Conversation,
        people: Escaped(people),
        messages,
        subject: Escaped(subject),
        snippet: Escaped(snippet),
        date: Escaped(date),
        moment: Escaped("2026-11-22T09:41:00Z"),
        is_unread: false,
        is_starred: false,
        is_answered: false,
        has_attachment: false,
    };
    let unread = |row: ListRow<'static>| ListRow { is_unread: true, ..row };
    let all = [
        unread(ListRow {
            is_answered: true,
            ..row(
                "Grace Hopper, me",
                3,
                "The compiler is done",
                "It compiles itself now, which took us until four in the morning. I attach the listing and",
                "09:41",
            )
        }),
        unread(ListRow {
            has_attachment: true,
            ..row(
                "Blåbærtur AS",
                1,
                "Faktura 2026-1182",
                "Hei Ada, vedlagt finner du faktura for november. Forfall er 6. desember.",
                "08:15",
            )
        }),
        ListRow {
            is_starred: true,
            ..row(
                "Charles Babbage",
                12,
                "Re: Note G, and the numbers of Bernoulli",
                "I am reluctant to print it before the table is checked once more by somebody who is not",
                "Yesterday",
            )
        },
        row(
            "محمد بن موسى",
            1,
            "كتاب الجبر",
            "السلام عليكم، أرسل إليكم النسخة الجديدة من الكتاب مع الشكر",
            "Nov 20",
        ),
        unread(row(
            "山田 太郎",
            2,
            "来週の打ち合わせについて",
            "お世話になっております。来週火曜日の打ち合わせの件ですが、午後三時からでよろしいでしょうか。",
            "Nov 19",
        )),
        row("cron@build.example", 1, "", "Backup finished in 00:04:12, 0 errors", "Nov 18"),
        ListRow {
            has_attachment: true,
            ..row(
                "A very long name of somebody who could not decide between all of them",
                1,
                "A subject that is much longer than any list has room for, so that it has to be cut somewhere in the middle of it",
                "and then the text begins",
                "Nov 2",
            )
        },
    ];
    all.iter().map(ListRow::written).collect()
}

const TEXT: &str = "Hello Ada,\n\nit compiles itself now. The listing is at https://example.org/listing?part=1&full=yes (and attached).\n\n<script>alert(1)</script> is only text here.\n\nGrace\n\n> On Friday you wrote:\n> Is it done?\n> I would like to see it.\n> Really.\n";

fn conversation(theme: Theme) -> ConversationPage<'static> {
    const ATTACHED: [Attachment<'_>; 2] = [
        Attachment { name: "listing.pdf", size: "214 KB", href: "/mail/part/1.7/2" },
        Attachment {
            name: "Übersicht der Änderungen.xlsx",
            size: "38 KB",
            href: "/mail/part/1.7/3",
        },
    ];
    const FIRST: ConversationMessage<'_> = ConversationMessage {
        key: "1.5",
        href: "/mail/box/1/5",
        from: "Grace Hopper",
        address: "grace@example.org",
        to: "me",
        people: &[],
        date: "Fri 14:02",
        moment: "2026-11-20T14:02:00Z",
        sent: None,
        snippet: "I shall have it by Monday, unless the relay sticks again",
        is_starred: false,
        is_asked_for: false,
        is_unread: false,
        warnings: &[],
        notices: &[],
        loads: Loads::Own,
        bodies: &[MessageBody::Folded],
        attachments: &[],
    };
    const MESSAGES: [ConversationMessage<'_>; 3] = [
        FIRST,
        ConversationMessage {
            from: "me",
            address: "ada@barepost.test",
            to: "Grace Hopper",
            date: "Fri 16:20",
            snippet: "Is it done? I would like to see it.",
            bodies: &[MessageBody::Text(Prose("Is it done? I would like to see it.\n"))],
            ..FIRST
        },
        ConversationMessage {
            key: "1.7",
            date: "09:41",
            is_asked_for: true,
            bodies: &[MessageBody::Text(Prose(TEXT))],
            attachments: &ATTACHED,
            ..FIRST
        },
    ];
    ConversationPage {
        frame: frame(theme, None),
        subject: "The compiler is done",
        back: "/mail/box/1",
        here: "/mail/box/1/7",
        key: "1.7",
        is_outbox: false,
        is_cut: false,
        messages: &MESSAGES,
    }
}

fn compose(theme: Theme) -> ComposePage<'static> {
    ComposePage {
        frame: frame(theme, None),
        title: "Reply",
        draft: "2.9",
        answers: "1.7",
        to: "Grace Hopper <grace@example.org>",
        cc: "",
        bcc: "",
        subject: "Re: The compiler is done",
        text: "Wonderful!\n\nOn Friday Grace Hopper wrote:\n> it compiles itself now.",
        attachments: &[(2, "tables.csv")],
        is_unsaved: false,
        error: Some("The server’s disk is full. Delete some messages and try again."),
    }
}

fn settings(theme: Theme) -> SettingsPage<'static> {
    const SESSIONS: [SessionLine<'_>; 2] = [
        SessionLine {
            key: "s1",
            program: "Firefox on Linux",
            since: "Signed in 25 Nov 2026, 08:12 from 10.0.2.2, last active 25 Nov 2026, 09:30 (UTC)",
            is_this: true,
        },
        SessionLine {
            key: "s2",
            program: "Safari on iPhone",
            since: "Signed in 3 Nov 2026, 17:40 from 192.0.2.17, last active 24 Nov 2026, 21:05",
            is_this: false,
        },
    ];
    SettingsPage {
        frame: frame(theme, None),
        name: "Ada Lovelace",
        signature: "Ada\nAnalyst",
        hold: HoldTime::Short,
        zone: "Europe/London",
        sessions: &SESSIONS,
    }
}

fn queue(theme: Theme) -> String {
    let row = |number: u32, recipients: &str, state: &str, tries: &str, said: &str| QueueRow {
        key: format!("00000000000000aa.{number}"),
        sender: "ada@barepost.test".into(),
        recipients: recipients.into(),
        state: state.into(),
        facts: format!("queued since 09:41, 4 KB, {tries}"),
        last_result: said.into(),
        is_held: state == "Held",
        is_under_way: state == "Sending",
        is_readable: true,
        is_left_alone: false,
    };
    let full = "Last attempt: mx.example.org has said: 452 4.2.2 The mailbox of this user is full.";
    let rows = [
        row(
            1,
            "grace@example.org, charles@example.org",
            "Next attempt: 10:20",
            "3 attempts since startup",
            full,
        ),
        row(2, "info@blaabaertur.example", "Sending", "not tried since startup", ""),
        row(
            3,
            "mary@example.net",
            "Held",
            "1 attempt since startup",
            "Last attempt: the other server did not answer.",
        ),
    ];
    let counted = |domain: &str, policy: &'static str, sessions: u64, failures: &str| TlsRow {
        domain: domain.into(),
        day: "today",
        policy,
        sessions,
        failures: failures.into(),
    };
    let tls = [
        counted("example.net", "sts", 0, "3 certificate-expired, 1 starttls-not-supported"),
        counted("blaabaertur.example", "no-policy-found", 1248, "0"),
    ];
    let page = QueuePage {
        frame: frame(theme, None),
        counts: "3 messages in the queue: 1 held, 1 being sent. Grouped by outbox, oldest first. Times are UTC.",
        here: "/mail/queue",
        rows: &rows,
        is_later: false,
        next: Some("/mail/queue?after=00000000000000aa.3"),
        tls: &tls,
    };
    page.render().unwrap_or_default()
}

fn mailboxes(theme: Theme) -> MailboxesPage<'static> {
    const OWN: [OwnMailbox<'_>; 2] = [
        OwnMailbox { id: 16, name: "Bills", messages: 214 },
        OwnMailbox { id: 17, name: "Reisen", messages: 0 },
    ];
    MailboxesPage { frame: frame(theme, None), own: &OWN, refused: "" }
}

fn source(theme: Theme) -> SourcePage<'static> {
    SourcePage {
        frame: frame(theme, None),
        subject: "The compiler is done",
        back: "/mail/box/1/7",
        download: "/mail/download/1.7",
        octets: "Return-Path: <grace@example.org>\r\nFrom: Grace Hopper <grace@example.org>\r\nSubject: The compiler is done\r\n\r\nHello Ada,\r\n",
        is_cut: true,
    }
}

fn print() -> PrintPage<'static> {
    PrintPage {
        address: "ada@barepost.test",
        subject: "The compiler is done",
        back: "/mail/box/1/7",
        is_cut: false,
        messages: conversation(Theme::Light).messages,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("style.css"), STYLE)?;
    let rows = rows();
    for theme in [Theme::Light, Theme::Dark] {
        let undone = FlashNotice {
            text: "2 conversations archived.",
            is_error: false,
            undo: Some("f1"),
            seconds: None,
        };
        let list = ListPage {
            frame: frame(theme, Some(undone)),
            title: "Inbox",
            here: "/mail/box/1",
            list: "",
            rows: &rows,
            extent: "1–7 of 7",
            progress: None,
            newer: None,
            older: Some("/mail/box/1?before=0.2a.7"),
            is_trash: false,
            is_outbox: false,
            is_junk: false,
            is_grouped: true,
            last_uid: 0,
        };
        let login = LoginPage {
            host: "mail.barepost.test",
            name: "ada@barepost.test",
            next: "",
            notice: None,
            error: Some("Address and password do not belong together."),
            draft: "",
        };
        let pages = [
            ("list", list.render()?),
            ("conversation", conversation(theme).render()?),
            ("compose", compose(theme).render()?),
            ("settings", settings(theme).render()?),
            ("mailboxes", mailboxes(theme).render()?),
            ("queue", queue(theme)),
            ("source", source(theme).render()?),
            ("print", print().render()?),
            ("login", login.render()?),
        ];
        for (name, page) in pages {
            let page = page.replace(&Asset::Style.to_string(), "style.css");
            std::fs::write(folder.join(format!("{name}-{}.html", theme.name())), page)?;
        }
    }
    Ok(())
}
