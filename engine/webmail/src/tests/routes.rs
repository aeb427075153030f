//! Tests of routes and addresses.

use alloc::format;
use alloc::string::{String, ToString};
use outbound::QueueEntryId;
use proptest::option;
use proptest::prelude::*;
use store::{AccountId, DatePlace, Uid};

use crate::{
    Asset, ComposeStart, Destination, ListPlace, ListRange, MessageKey, NotFound, PermanentId,
    PostAction, Route, SearchPlace, TARGET_BYTES_MAX, WebPage,
};

const KEY: MessageKey = MessageKey { mailbox: 1, uid: 7 };
const MESSAGE: PermanentId = PermanentId { conversation: 0xfedc_ba98_7654_3210, guid: 0x2a };
const PLACE: ListPlace = ListPlace(DatePlace { date: 0, guid: 0x2a, uid: 7 });
const FOUND: SearchPlace = SearchPlace { mailbox: 1, place: PLACE };
const POSTED: QueueEntryId = QueueEntryId { account: AccountId::from_bits(255), uid: Uid(7) };

fn page_of(target: &str) -> Option<WebPage<'_>> {
    match Route::of("GET", target) {
        Ok(Route::Get(page)) => Some(page),
        Ok(Route::Post(action)) => panic!("{target}: {action}"),
        Err(NotFound) => None,
    }
}

#[test]
fn every_page_and_form_has_its_address() {
    let list = |range| WebPage::List { mailbox: 1, range };
    let search = |words: &'static str, mailbox, before| WebPage::Search {
        words: words.into(),
        mailbox,
        before,
    };
    for (target, page) in [
        ("/mail/", WebPage::Home),
        ("/mail/box/1", list(ListRange::Newest)),
        ("/mail/box/1?before=0.2a.7", list(ListRange::Before(PLACE))),
        (
            "/mail/box/1?after=4294967295.0.4294967295",
            list(ListRange::After(ListPlace(DatePlace { date: u32::MAX, guid: 0, uid: u32::MAX }))),
        ),
        ("/mail/box/1/7", WebPage::Read(KEY)),
        ("/mail/message/fedcba9876543210.2a", WebPage::Message(MESSAGE, None)),
        (
            "/mail/message/fedcba9876543210.2a?list=%2Fmail%2Fbox%2F1%3Fbefore%3D0.2a.7",
            WebPage::Message(MESSAGE, Destination::of_list("/mail/box/1?before=0.2a.7")),
        ),
        ("/mail/compose", WebPage::Compose(ComposeStart::New)),
        ("/mail/compose?reply=1.7", WebPage::Compose(ComposeStart::Reply(KEY))),
        ("/mail/compose?all=1.7", WebPage::Compose(ComposeStart::ReplyToAll(KEY))),
        ("/mail/compose?forward=1.7", WebPage::Compose(ComposeStart::Forward(KEY))),
        (
            "/mail/compose?draft=1.7",
            WebPage::Compose(ComposeStart::Draft { draft: KEY, answers: None }),
        ),
        (
            "/mail/compose?draft=1.7&answers=1.7",
            WebPage::Compose(ComposeStart::Draft { draft: KEY, answers: Some(KEY) }),
        ),
        ("/mail/search?q=", search("", None, None)),
        ("/mail/search?q=from%3Agrace+%22caf%C3%A9%22", search("from:grace \"café\"", None, None)),
        ("/mail/search?q=a&in=1&before=1.0.2a.7", search("a", Some(1), Some(FOUND))),
        ("/mail/settings", WebPage::Settings),
        ("/mail/boxes", WebPage::Mailboxes),
        ("/mail/queue", WebPage::Queue(None)),
        ("/mail/queue?after=00000000000000ff.7", WebPage::Queue(Some(POSTED))),
        ("/mail/events", WebPage::Events),
        ("/mail/source/1.7", WebPage::Source(KEY)),
        ("/mail/download/1.7", WebPage::Download(KEY)),
        ("/mail/export/1", WebPage::Export(1)),
        ("/mail/print/1.7", WebPage::Print(KEY)),
        ("/mail/print/1.7/all", WebPage::PrintAll(KEY)),
        ("/mail/part/1.7/0", WebPage::Part(KEY, 0)),
        ("/mail/inner/1.7/2.0", WebPage::Inner(KEY, 2, 0)),
        ("/mail/html/1.7/65535", WebPage::Html(KEY, u16::MAX)),
        ("/mail/whole/1.7/0", WebPage::Whole(KEY, 0)),
        ("/mail/login", WebPage::Login(Destination::default())),
        ("/mail/login?next=%2Fmail%2Fbox%2F1", WebPage::Login(Destination::of("/mail/box/1"))),
    ] {
        assert_eq!(page_of(target), Some(page.clone()), "{target}");
        assert_eq!(Route::of("HEAD", target), Ok(Route::Get(page.clone())), "{target}");
        assert_eq!(page.to_string(), target);
    }
    for (target, action) in [
        ("/mail/login", PostAction::LogIn),
        ("/mail/logout", PostAction::LogOut),
        ("/mail/act", PostAction::Act),
        ("/mail/show", PostAction::Show),
        ("/mail/undo", PostAction::Undo),
        ("/mail/compose", PostAction::Write),
        ("/mail/settings", PostAction::Set),
        ("/mail/boxes", PostAction::Mailboxes),
        ("/mail/queue", PostAction::Queue),
    ] {
        assert_eq!(Route::of("POST", target), Ok(Route::Post(action)));
        assert_eq!(action.to_string(), target);
    }
}

#[test]
fn search_address_accepts_any_order_and_an_empty_mailbox() {
    let search = WebPage::Search { words: "a b".into(), mailbox: None, before: Some(FOUND) };
    assert_eq!(page_of("/mail/search?before=1.0.2a.7&in=&q=a%20b"), Some(search));
    assert_eq!(
        page_of("/mail/search"),
        Some(WebPage::Search { words: "".into(), mailbox: None, before: None })
    );
}

#[test]
fn other_addresses_are_not_found() {
    for target in [
        "",
        "/",
        "*",
        "mail/",
        "/mail",
        "/Mail/",
        "//mail/",
        "/mail//",
        "/mail/x",
        "/mail/./",
        "/mail/../mail/",
        "/mail/box",
        "/mail/box/",
        "/mail/box/0",
        "/mail/box/01",
        "/mail/box/+1",
        "/mail/box/-1",
        "/mail/box/1/",
        "/mail/box/1/0",
        "/mail/box/1/07",
        "/mail/box/1/7/",
        "/mail/box/1/7/8",
        "/mail/box/4294967296",
        "/mail/box/%31",
        "/mail/%62ox/1",
        "/mail/box/1?before=",
        "/mail/box/1?before=7",
        "/mail/box/1?before=0.2a",
        "/mail/box/1?before=0.2a.0",
        "/mail/box/1?before=00.2a.7",
        "/mail/box/1?before=0.2A.7",
        "/mail/box/1?before=0.2a.7.8",
        "/mail/box/1?before=0.2a.7&after=0.2a.8",
        "/mail/box/1?before=0.2a.7&before=0.2a.8",
        "/mail/box/1?page=2",
        "/mail/box/1/7?before=1",
        "/mail/message/a1",
        "/mail/message/a1.",
        "/mail/message/a1.02",
        "/mail/message/A1.2",
        "/mail/message/+1.2",
        "/mail/message/10000000000000000.2",
        "/mail/message/a1.2/3",
        "/mail/message/a1.2?list=",
        "/mail/message/a1.2?list=%2Fmail%2F",
        "/mail/message/a1.2?list=%2Fmail%2Fmessage%2Fa1.2",
        "/mail/message/a1.2?list=%2Fmail%2Fbox%2F1%2F7",
        "/mail/message/a1.2?list=https%3A%2F%2Fhost%2Fmail%2Fbox%2F1",
        "/mail/style.css",
        "/mail/style.css?v=",
        "/mail/mail.js?v=0123456789abcdef",
        "/mail/source/1",
        "/mail/source/1.",
        "/mail/source/.7",
        "/mail/source/1.7.8",
        "/mail/source/01.7",
        "/mail/source/1.+7",
        "/mail/source/1.7/0",
        "/mail/source/1.7?x",
        "/mail/part/1.7",
        "/mail/part/1.7/00",
        "/mail/part/1.7/65536",
        "/mail/part/1.7/1/2",
        "/mail/compose?reply=7",
        "/mail/compose?reply=1.7&all=1.7",
        "/mail/compose?to=a",
        "/mail/search?q=a&q=b",
        "/mail/search?in=01",
        "/mail/search?before=0.2a.7",
        "/mail/queue?after=",
        "/mail/queue?after=ff.7",
        "/mail/queue?after=00000000000000FF.7",
        "/mail/queue?after=00000000000000ff.0",
        "/mail/queue?before=00000000000000ff.7",
        "/mail/settings?x=1",
        "/mail/login?to=x",
        "/mail/logout",
        "/mail/act",
        "/mail/#x",
        "/mail/ ",
        "/mail/\n",
        "/mail/search?q=\u{e4}",
        "https://host/mail/",
    ] {
        assert_eq!(page_of(target), None, "{target:?}");
    }
    for target in
        ["/mail/", "/mail/act/", "/mail/act?x", "/mail/box/1", "/mail/mail.js", "/mail/ACT"]
    {
        assert_eq!(Route::of("POST", target), Err(NotFound), "{target}");
    }
    for method in ["get", "PUT", "DELETE", ""] {
        assert_eq!(Route::of(method, "/mail/"), Err(NotFound), "{method}");
    }
    let long =
        |bytes: usize| format!("/mail/search?q={}", "a".repeat(bytes - "/mail/search?q=".len()));
    assert!(page_of(&long(TARGET_BYTES_MAX)).is_some());
    assert!(page_of(&long(TARGET_BYTES_MAX + 1)).is_none());
}

#[test]
fn redirects_never_leave_our_pages() {
    let home = Destination::default();
    assert_eq!(home.as_str(), "/mail/");
    for evil in [
        "//evil",
        "///evil",
        "/\\evil",
        "\\\\evil",
        "https://evil",
        "https:evil",
        "javascript:alert(1)",
        "evil",
        "",
        "/mail/../x",
        "/mail/..",
        "/mail/%2e%2e/x",
        "/mail/..%2fx",
        "/mail/\\evil",
        "/mail//evil",
        "/%2fevil",
        "%2f%2fevil",
        "/mail/\r\nLocation: https://evil",
        "/mail/%0d%0aSet-Cookie:x",
        "/mail/box/1\n",
        "/mail/box/1\t",
        "\t//evil",
        " /mail/",
        "/mail/\0",
        "/mail/box/1#x",
        "/mail/box/1?next=//evil",
        "/mail@evil/",
        "/mail.evil/",
        "/mail:80/",
        "/mailx/",
        "/mail/logout",
        "/mail/act",
        "/mail/login",
        "/mail/login?next=/mail/box/1",
    ] {
        assert_eq!(Destination::of(evil), home, "{evil:?}");
        let target = WebPage::Login(home.clone()).to_string();
        let encoded: String = form_urlencoded::byte_serialize(evil.as_bytes()).collect();
        assert_eq!(
            page_of(&format!("{target}?next={encoded}")),
            Some(WebPage::Login(home.clone())),
            "{evil:?}"
        );
    }
    let many = "/mail/login?next=".repeat(200);
    assert_eq!(page_of(&many), Some(WebPage::Login(home)));
    for good in [
        "/mail/box/1?before=0.2a.7",
        "/mail/box/1/7",
        "/mail/search?q=a%0D%0Ab",
        "/mail/compose?reply=1.7",
    ] {
        assert_eq!(Destination::of(good).as_str(), good);
    }
}

fn key() -> impl Strategy<Value = MessageKey> {
    (1..=u32::MAX, 1..=u32::MAX).prop_map(|(mailbox, uid)| MessageKey { mailbox, uid })
}

fn place() -> impl Strategy<Value = ListPlace> {
    (any::<u32>(), any::<u64>(), 1..=u32::MAX)
        .prop_map(|(date, guid, uid)| ListPlace(DatePlace { date, guid, uid }))
}

fn plain_page() -> impl Strategy<Value = WebPage<'static>> {
    let range = prop_oneof![
        Just(ListRange::Newest),
        place().prop_map(ListRange::Before),
        place().prop_map(ListRange::After),
    ];
    let start = prop_oneof![
        Just(ComposeStart::New),
        key().prop_map(ComposeStart::Reply),
        key().prop_map(ComposeStart::ReplyToAll),
        key().prop_map(ComposeStart::Forward),
        (key(), option::of(key()))
            .prop_map(|(draft, answers)| ComposeStart::Draft { draft, answers }),
    ];
    let whole =
        [WebPage::Home, WebPage::Settings, WebPage::Mailboxes, WebPage::Asset(Asset::Style)];
    prop_oneof![
        prop::sample::select(whole.to_vec()),
        (1..=u32::MAX, range).prop_map(|(mailbox, range)| WebPage::List { mailbox, range }),
        start.prop_map(WebPage::Compose),
        (any::<u64>(), any::<u64>(), option::of(".{0,40}")).prop_map(
            |(conversation, guid, words)| {
                let of = |words: String| {
                    WebPage::Search { words: words.into(), mailbox: None, before: None }.to_string()
                };
                let list = words.and_then(|words| Destination::of_list(&of(words)));
                WebPage::Message(PermanentId { conversation, guid }, list)
            }
        ),
        (".{0,40}", option::of(1..=u32::MAX), option::of((1..=u32::MAX, place()))).prop_map(
            |(words, mailbox, before)| {
                let before = before.map(|(mailbox, place)| SearchPlace { mailbox, place });
                WebPage::Search { words: words.into(), mailbox, before }
            }
        ),
        (key(), any::<u16>(), 0..9_u8).prop_map(|(key, part, which)| match which {
            0 => WebPage::Read(key),
            1 => WebPage::Source(key),
            2 => WebPage::Download(key),
            3 => WebPage::Print(key),
            4 => WebPage::PrintAll(key),
            5 => WebPage::Part(key, part),
            6 => WebPage::Html(key, part),
            7 => WebPage::Inner(key, part, 7),
            _ => WebPage::Whole(key, part),
        }),
    ]
}

proptest! {
    #[test]
    fn page_survives_writing_and_parsing_its_address(page in plain_page(), is_behind_login: bool) {
        let page = if is_behind_login { WebPage::Login(Destination::of(&page.to_string())) } else { page };
        let target = page.to_string();
        prop_assert!(target.starts_with("/mail/") && target.bytes().all(|byte| byte.is_ascii_graphic()), "{}", target);
        prop_assert_eq!(page_of(&target), Some(page));
    }

    #[test]
    fn any_destination_is_a_page_of_ours(text in r"(/mail/(box/1/?|search\?q=)?)?[ -~\r\n\t\\/%.]{0,30}") {
        let destination = Destination::of(&text);
        let page = page_of(destination.as_str()).map(|page| page.to_string());
        prop_assert_eq!(page.as_deref(), Some(destination.as_str()));
        prop_assert!(!destination.as_str().contains("//") && !destination.as_str().contains('\\'));
    }
}
