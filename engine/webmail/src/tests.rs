//! Tests of the pages with an HTML parser, and tests of request parsing.

mod assets;
mod attachments;
mod embedded_images;
mod forms;
mod inert;
mod moments;
mod numbered;
mod pages;
mod phishing;
mod prose;
mod remote_content;
mod routes;
mod search;
mod sessions;
mod tickets;
mod tls_counts;
mod trusted_senders;
mod waiting;
mod zones;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use scraper::{Html, Selector};

use crate::tests::pages::{Words, all};
use crate::{Density, Route, Theme};

fn parsed(page: &str) -> Html {
    Html::parse_document(page)
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("a selector")
}

fn count(page: &Html, what: &str) -> usize {
    page.select(&selector(what)).count()
}

const HOSTILE: [&str; 5] = [
    "\"><script>alert(1)</script>",
    "' onmouseover='alert(1)' x='",
    "</textarea><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}&lt;b&gt;",
    "</title><svg/onload=alert(1)>",
];

#[test]
fn every_page_is_valid_html() {
    for words in [Words::MILD, Words::all(""), Words::all(HOSTILE[0])] {
        for (name, page) in all(words) {
            assert_eq!(parsed(&page).errors, [""; 0], "{name}");
        }
    }
}

#[test]
fn text_of_a_message_never_becomes_markup() {
    let elements = |page: &str| -> Vec<String> {
        parsed(page)
            .select(&selector("*"))
            .map(|element| element.value().name().to_string())
            .collect()
    };
    for hostile in HOSTILE {
        for ((name, mild), (_, page)) in
            all(Words::all("mild")).into_iter().zip(all(Words::all(hostile)))
        {
            assert_eq!(elements(&mild), elements(&page), "{name}: {hostile}");
            let html = parsed(&page);
            for element in html.select(&selector("*")) {
                let handler = element
                    .value()
                    .attrs()
                    .find(|(name, _)| name.starts_with("on") || *name == "style");
                assert_eq!(handler, None, "{name}: {hostile}");
            }
        }
    }
}

#[test]
fn every_post_form_carries_the_session_token() {
    for (name, page) in all(Words::MILD).into_iter().filter(|(name, _)| *name != "login") {
        let html = parsed(&page);
        let forms: Vec<_> = html.select(&selector("form[method=post]")).collect();
        assert_eq!(forms.is_empty(), ["print", "refused"].contains(&name), "{name}");
        for form in forms {
            let tokens: Vec<_> = form.select(&selector("input[type=hidden][name=token]")).collect();
            assert_eq!(tokens.len(), 1, "{name}");
            assert_eq!(tokens[0].value().attr("value"), Some(Words::MILD.token), "{name}");
        }
    }
}

/// WCAG 2.2 requires this in its criteria 1.3.1 and 4.1.2.
#[test]
fn every_form_field_has_an_accessible_name() {
    for (name, page) in all(Words::MILD) {
        let html = parsed(&page);
        for field in html.select(&selector("input:not([type=hidden]), select, textarea")) {
            let labelled = field
                .value()
                .attr("id")
                .is_some_and(|id| count(&html, &format!("label[for='{id}']")) == 1);
            assert!(
                labelled || field.value().attr("aria-label").is_some(),
                "{name}: {}",
                field.html()
            );
        }
        let headings = count(&html, "h1");
        assert_eq!(headings, 1, "{name}");
        let mut seen = Vec::new();
        for element in html.select(&selector("[id]")) {
            let id = element.value().attr("id").unwrap_or_default().to_string();
            assert!(!seen.contains(&id), "{name}: {id} twice");
            seen.push(id);
        }
    }
}

/// The policy of our pages blocks all other resources.
#[test]
fn pages_have_no_inline_code_and_no_remote_resources() {
    for (name, page) in all(Words::MILD) {
        let html = parsed(&page);
        assert_eq!(
            count(&html, "style, script:not([src]), [style], object, embed, base, img"),
            0,
            "{name}"
        );
        for element in html.select(&selector("link[href], script[src], iframe[src], form[action]"))
        {
            let attributes = element.value();
            let address =
                ["href", "src", "action"].into_iter().find_map(|name| attributes.attr(name));
            assert!(
                address.is_some_and(|address| address.starts_with("/mail/")),
                "{name}: {address:?}"
            );
        }
    }
}

#[test]
fn links_of_pages_are_valid_routes() {
    for (name, page) in all(Words::MILD) {
        let html = parsed(&page);
        for element in html
            .select(&selector("a[href^='/'], link[href], script[src], iframe[src], form[action]"))
        {
            let attributes = element.value();
            let address =
                ["href", "src", "action"].into_iter().find_map(|name| attributes.attr(name));
            let method = attributes.attr("method").unwrap_or("get").to_uppercase();
            let route = address.map(|address| Route::of(&method, address));
            assert!(route.is_some_and(|route| route.is_ok()), "{name}: {method} {address:?}");
        }
    }
}

#[test]
fn html_of_a_message_is_in_a_sandboxed_frame() {
    for name in ["conversation", "print"] {
        let html = page_named(name, Words::MILD);
        let frames: Vec<_> = html.select(&selector("iframe")).collect();
        // One message has only HTML, and one has it among texts.
        assert_eq!(frames.len(), 2, "{name}");
        for frame in frames.iter().map(|frame| frame.value()) {
            let sandbox: Vec<&str> = frame.attr("sandbox").expect("a sandbox").split(' ').collect();
            let allowed = ["allow-same-origin", "allow-popups", "allow-popups-to-escape-sandbox"];
            assert_eq!(sandbox, allowed, "{name}");
            let others = (frame.attr("srcdoc"), frame.attr("referrerpolicy"));
            assert_eq!(others, (None, Some("no-referrer")), "{name}");
        }
    }
}

#[test]
fn compose_page_keeps_the_fields_of_an_unsent_message() {
    let pages = all(Words::all("kept <&> kept"));
    let (_, page) = pages.iter().find(|(name, _)| *name == "compose").expect("the page");
    let html = parsed(page);
    let text: String = html.select(&selector("textarea")).flat_map(|area| area.text()).collect();
    assert_eq!(text, "kept <&> kept");
    for field in ["to", "cc", "bcc", "subject"] {
        let value = html
            .select(&selector(&format!("#{field}")))
            .next()
            .and_then(|input| input.value().attr("value"));
        assert_eq!(value, Some("kept <&> kept"), "{field}");
    }
    assert_eq!(count(&html, "details.others[open]"), 1);
}

fn page_named(named: &str, words: Words) -> Html {
    let page = all(words).into_iter().find(|(name, _)| *name == named).map(|(_, page)| page);
    parsed(&page.expect("the page"))
}

/// The names of the fields in the first form with a button that matches `button`.
fn fields_of(page: &Html, button: &str) -> Vec<String> {
    let is_ours = |form: &scraper::ElementRef<'_>| form.select(&selector(button)).next().is_some();
    let form = page.select(&selector("form")).find(is_ours).expect("the form");
    let fields = selector("input, select, textarea");
    form.select(&fields).filter_map(|field| field.value().attr("name")).map(String::from).collect()
}

#[test]
fn settings_forms_have_the_expected_fields_and_values() {
    let settings = page_named("settings", Words::all("kept <&> kept"));
    for (button, fields) in [
        (
            "button[name=do][value=save]",
            &["token", "name", "signature", "hold", "theme", "density", "zone"][..],
        ),
        ("button[name=do][value=password]", &["token", "old", "new", "again"]),
        ("button[name=do][value=end-others]", &["token"]),
        ("button[name=end]", &["token"]),
    ] {
        assert_eq!(fields_of(&settings, button), fields, "{button}");
    }
    let signature: String =
        settings.select(&selector("#signature")).flat_map(|area| area.text()).collect();
    assert_eq!(signature, "kept <&> kept");
    for (select, chosen) in [("#theme", "auto"), ("#density", "compact")] {
        let selected: Vec<_> =
            settings.select(&selector(&format!("{select} option[selected]"))).collect();
        assert_eq!(
            selected.iter().map(|option| option.attr("value")).collect::<Vec<_>>(),
            [Some(chosen)]
        );
    }
    assert!(
        Theme::ALL.iter().all(|theme| Theme::named(theme.name()) == Some(*theme))
            && Theme::named("").is_none()
    );
    assert!(Density::ALL.iter().all(|density| Density::named(density.name()) == Some(*density)));
    // The list has no button for the session of the page itself.
    assert_eq!(count(&settings, "button[name=end]"), 1);

    let mailboxes = page_named("mailboxes", Words::MILD);
    for (button, fields) in [
        ("button[value=make]", &["token", "name"][..]),
        ("button[value=rename]", &["token", "box", "name"]),
        ("button[value=remove]", &["token", "box"]),
    ] {
        assert_eq!(fields_of(&mailboxes, button), fields, "{button}");
    }
    // The remove button is hidden until the user opens it.
    assert_eq!(
        count(&mailboxes, "button[value=remove]"),
        count(&mailboxes, "details:not([open]) button[value=remove]")
    );
}

#[test]
fn search_page_shows_its_progress_and_a_link_to_continue() {
    let list = page_named("list", Words::MILD);
    let on = list.select(&selector("p[role=status] a")).next().and_then(|link| link.attr("href"));
    assert_eq!(on, Some("/mail/box/1?before=0.2a.7"));
    assert_eq!(count(&page_named("conversation", Words::MILD), "p[role=status]"), 0);
}

#[test]
fn source_page_shows_the_octets_of_a_message() {
    let hostile = "\r\nX: <b>&amp;\u{fffd}</pre>";
    let source = page_named("source", Words::all(hostile));
    let shown: String = source.select(&selector("pre.source")).flat_map(|pre| pre.text()).collect();
    assert_eq!(shown, hostile.replace("\r\n", "\n"));
}

#[test]
fn print_page_folds_nothing() {
    let quoted = "well\n> 1\n> 2\n> 3\n> 4\n<b>";
    let print = page_named("print", Words::all(quoted));
    assert_eq!(
        (count(&print, "details"), count(&print, "blockquote"), count(&print, "b")),
        (0, 3, 0)
    );
}
