"""The promise: an HTML message looks as its author meant it, and its frame can do nothing with our origin.

With the script of the page, a message is as tall as its text, fits the width of the window, folds its quotations, follows
the theme, and passes keys and the wheel on to the page. Nothing in it runs, sends a form, opens a page of ours with the
reader's cookie, or navigates the reader's window, neither in its frame nor alone in a window.

Chromium and Firefox show the messages. It takes two minutes under TCG.
"""

import re
import subprocess
import time

import barepost
import webdriver
from mail import DOMAIN, PASSWORD
from marionette import Firefox
from processes import die_with_us, program, until
from webdriver import ANSWER_SECONDS, DESKTOP, PHONE, Screen
from webmail_hostile import FETCHING, RUNNING, Listener
from webmail_reader import NEWEST, Reader

FRAME = "iframe.sheet-of-mail"
# The height of each frame and of its document, which is -1 before there is one, and how far the frame scrolls down and sideways.
SIZES = """
return [...document.querySelectorAll("iframe")].map(({ clientHeight, contentDocument, contentWindow }) => {
  const [root] = Document.prototype.querySelectorAll.call(contentDocument, ":root");
  if (!root) {
    return [clientHeight, -1, 0, 0];
  }
  contentWindow.scrollTo(9999, 9999);
  const { scrollX, scrollY } = contentWindow;
  contentWindow.scrollTo(0, 0);
  return [clientHeight, Math.ceil(root.getBoundingClientRect().height), scrollY, scrollX];
});
"""
# The width of the page and of the window.
WIDTHS = "return [document.documentElement.scrollWidth, innerWidth]"
# The lines of the printed invoice.
LINES = 200
# The time that an attempt has. Without our policies it needs a few tenths of a second.
SETTLE_SECONDS = 1.5
# A table like those of most newsletters.
NEWSLETTER = "<style>td { color: navy; background: linen }</style><table width=600><tr><td>" + "It weaves flowers and leaves. " * 20 + "</td></tr></table>"
# Documents whose height or names are not usual.
UNUSUAL = {
    "no text": "",
    "quirks mode": "<p>It computes.</p>",
    "standards mode": "<!doctype html><p>It computes.</p>",
    "as tall as its frame": "<!doctype html><style>html, body { height: 100%; padding: 9px }</style><p>It computes.</p>",
    "names of properties": "<img name=querySelectorAll><img name=documentElement><form name=body><input name=style><input name=closest><p>It computes.</p></form>",
    "floats": "<div style='float: left; height: 90px'>It computes.</div>",
}
QUOTED = "The Analytical Engine has no pretensions whatever to originate anything. " * 4


def part(html):
    return "Content-Type: text/html; charset=utf-8\r\n\r\n" + html.replace("\n", "\r\n") + "\r\n"


def answered(number):
    """A short answer above all earlier ones, as Gmail writes it."""
    text = "Yes."
    for count in range(number):
        text = (
            f'<div dir="ltr">Answer {count}.</div><div class="gmail_quote"><div class="gmail_attr">On Monday Ada wrote:</div>'
            f'<blockquote class="gmail_quote" style="border-left: 1px solid rgb(204, 204, 204)">{text}</blockquote></div>'
        )
    return text


class Html:
    """The tests in one browser."""

    # Whether `print` opens no dialog, which would block all further commands.
    has_no_dialogs = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.listener = Listener()
        cls.addClassCleanup(cls.listener.close)
        cls.browser = cls.begin_browser()
        cls.addClassCleanup(cls.browser.close)

    address = classmethod(Reader.address.__func__)
    deliver_as_it_is = Reader.deliver_as_it_is

    def setUp(self):
        super().setUp()
        self.browser.leave()
        self.browser.go(self.address("/mail/login"))
        self.browser.run(
            "if (location.pathname !== '/mail/login') return; document.querySelector('#name').value = arguments[0]; document.querySelector('#password').value = arguments[1];"
            "document.querySelector('button[type=submit]').click()", f"ada@{DOMAIN}", PASSWORD,
        )
        until(lambda: self.browser.address.endswith("/mail/box/1"), ANSWER_SECONDS, "the inbox")
        del self.listener.asked[:]

    def deliver(self, html, more=""):
        self.deliver_as_it_is((
            f"From: Charles <charles@elsewhere.test>\r\nTo: ada@{DOMAIN}\r\nSubject: {Reader.unique('Loom')}\r\n{more}MIME-Version: 1.0\r\n"
            + part(html)
        ).encode())

    def open(self, html=None):
        """Opens the newest message, after a delivery if there is HTML. Returns the path of its page."""
        if html is not None:
            self.deliver(html)
        self.browser.go(self.address("/mail/box/1"))
        path = f"/mail/box/1/{self.browser.run(NEWEST)}"
        self.browser.go(self.address(path))
        until(lambda: self.run_in_frame("return document.readyState") == "complete", ANSWER_SECONDS, "the frame")
        return path

    def run_in_frame(self, script):
        self.browser.enter(FRAME)
        result = self.browser.run(script)
        self.browser.leave()
        return result

    def assertFits(self, what):
        """Asserts that each frame is soon as tall as its document, without a scroll area."""
        def fits():
            fit = [height == own and more <= 0 for height, own, more, _ in self.browser.run(SIZES)]
            if not all(fit):
                # A frame below the window is loaded when it comes near.
                self.browser.run("document.querySelectorAll('iframe')[arguments[0]].scrollIntoView()", fit.index(False))
            return all(fit)

        until(fits, ANSWER_SECONDS, what)
        self.browser.run("scrollTo(0, 0)")

    def test_a_message_is_as_tall_as_its_text(self):
        for what, html in UNUSUAL.items():
            with self.subTest(what=what):
                self.open(html)
                self.assertFits(what)
                self.assertLess(self.browser.run(SIZES)[0][0], 220)
        with self.subTest(what="taller than its frame"):
            self.open("<div style='min-height: 110vh'>It grows.</div>")
            time.sleep(SETTLE_SECONDS)
            self.assertLess(self.browser.run(SIZES)[0][0], 2000)

        with self.subTest(what="an absolute position"):
            self.open("<div style='position: absolute; top: 0; height: 900px'>It computes.</div>")
            until(lambda: self.browser.run(SIZES)[0][0] >= 900, ANSWER_SECONDS, "the frame is as tall as the element")
            time.sleep(SETTLE_SECONDS)
            self.assertLess(self.browser.run(SIZES)[0][0], 1000)
        with self.subTest(what="without end"):
            self.open("<div style='height: 9999999px'>It computes.</div>")
            until(lambda: self.browser.run(SIZES)[0][0] > 50_000, ANSWER_SECONDS, "the frame grows")
            self.assertLessEqual(self.browser.run(SIZES)[0][0], 100_000)

    def test_each_html_part_of_a_message_is_as_tall_as_its_text(self):
        parts = "".join(f"--b\r\n{part(html)}" for html in ("<p>It computes.</p>", "<p>Line</p>" * 100, "<p>It weaves.</p>"))
        self.deliver_as_it_is(f"From: a@elsewhere.test\r\nSubject: Parts\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--\r\n".encode())
        self.open()
        self.assertFits("the message")
        first, second, third = (height for height, *_ in self.browser.run(SIZES))
        self.assertLess(max(first, third), 100)
        self.assertGreater(second, 2000)

    def test_answers_of_a_conversation_fit_on_a_screen_or_two(self):
        first = Reader.unique("first").replace(" ", ".")
        for number in range(6):
            self.deliver(answered(number), f"Message-ID: <{number or ''}{first}@elsewhere.test>\r\nReferences: <{first}@elsewhere.test>\r\n")
        self.open()
        until(lambda: len(self.browser.run(SIZES)) == 6, ANSWER_SECONDS, "six messages")
        self.assertFits("the conversation")
        self.assertLess(self.browser.run("return document.documentElement.scrollHeight"), 2000)

    def test_a_long_quotation_is_folded(self):
        for what, html, count in (
            ("cited", f"<p>Yes.</p><blockquote type=cite>{QUOTED}</blockquote>", 1),
            ("introduced", f"<p>Yes.</p><div class=moz-cite-prefix>Ada wrote:</div><blockquote type=cite>{QUOTED}</blockquote>", 1),
            ("nested", answered(8), 1),
            ("short", "<p>Yes.</p><blockquote type=cite>No?</blockquote>", 0),
            ("without an answer", f"<blockquote type=cite>{QUOTED}</blockquote>", 0),
            ("forwarded", f"<p>See below.</p><div class=gmail_quote>---------- Forwarded message ----------<br>{QUOTED}</div>", 0),
            ("for show", f"<p>She says:</p><blockquote>{QUOTED}</blockquote><p>So do we.</p>", 0),
            ("for show in an element", f"<div><p>She says:</p><blockquote>{QUOTED}</blockquote></div><p>So do we.</p>", 0),
            ("answered within", f"<p>See below.</p><div class=gmail_quote>Ada wrote:<blockquote>{QUOTED}</blockquote><p>No.</p><blockquote>{QUOTED}</blockquote></div>", 0),
            ("a form", f"<p>Yes.</p><form class=gmail_quote><input name=matches>{QUOTED}</form>", 0),
        ):
            with self.subTest(what=what):
                self.open(html)
                self.assertFits(what)
                self.assertEqual(self.run_in_frame("return document.querySelectorAll('details').length"), count)
                if count:
                    folded = self.browser.run(SIZES)[0][0]
                    self.browser.enter(FRAME)
                    self.browser.click("summary")
                    self.browser.leave()
                    until(lambda: self.browser.run(SIZES)[0][0] > folded, ANSWER_SECONDS, "the frame grows")
                    self.assertFits("unfolded")

    def test_keys_and_the_wheel_work_over_a_message(self):
        hidden = "<div id=host><template shadowrootmode=open><input></template></div>"
        self.open("<p>It computes.</p><input id=field>" + hidden + "<p>Line</p>" * 100)
        self.assertFits("the message")

        def scrolls():
            # A turn of the wheel before the layout is complete has no effect.
            self.browser.wheel(600, 500, 300)
            return self.browser.run("return scrollY") > 200

        until(scrolls, ANSWER_SECONDS, "the page scrolls")
        self.browser.run("scrollTo(0, 0)")
        self.browser.enter(FRAME)
        self.browser.click("#field")
        self.browser.press("u")
        self.assertEqual(self.browser.run("return document.querySelector('#field').value"), "u", "a field gets what is typed")
        self.browser.run("document.querySelector('#host').shadowRoot.querySelector('input').focus()")
        self.browser.press("u")
        typed = "return document.querySelector('#host').shadowRoot.querySelector('input').value"
        self.assertEqual(self.browser.run(typed), "u", "a hidden field, too")
        self.browser.click("p")
        self.assertTrue(self.browser.run("return document.hasFocus()"), "the keys go to the frame")
        self.browser.press("u")
        self.browser.leave()
        until(lambda: self.browser.address.endswith("/mail/box/1"), ANSWER_SECONDS, "back to the list")

    def test_a_link_to_a_part_of_the_message_scrolls_to_it(self):
        here = self.open("<a id=go href='#end'>Go</a>" + "<p>Line</p>" * 100 + "<p id=end>The end.</p>")
        self.assertFits("the message")
        windows = len(self.browser.windows())
        self.browser.enter(FRAME)
        self.browser.click("#go")
        self.browser.leave()
        until(lambda: self.browser.run("return scrollY") > 500, ANSWER_SECONDS, "the page scrolls")
        self.assertEqual(self.browser.address, self.address(here))
        self.assertEqual(len(self.browser.windows()), windows)

    def test_nothing_in_a_message_uses_our_origin(self):
        sending = '<form action="HERE/a" target=_top><button id=go>Send</button></form><form action="/mail/logout" method=post><button>Send</button></form>'
        running = "<a id=run rel=opener target=_blank href=\"javascript:top.pwned=1;opener.top.pwned=1;opener.document.title='pwned'\">Run</a>"
        attempts = running + "".join((RUNNING | FETCHING).values()) + sending
        path = self.open(f"<p>Harmless</p>{attempts}".replace("HERE", self.listener.address))
        framed = self.browser.run("return document.querySelector('iframe').src")
        for what in ("in the frame", "alone"):
            if what == "alone":
                self.browser.go(framed)
            else:
                self.browser.enter(FRAME)
            self.assertIn("Harmless", self.browser.source)
            self.browser.run("for (const button of document.querySelectorAll('button')) button.click()")
            self.browser.click("#run")
            time.sleep(SETTLE_SECONDS)
            self.assertEqual(self.browser.run("return [typeof pwned, typeof top.pwned, document.title.startsWith('pwned')]"), ["undefined", "undefined", False], what)
            self.browser.leave()
            self.assertEqual(self.browser.address, framed if what == "alone" else self.address(path), what)
            self.assertEqual(self.listener.asked, [], what)
        self.browser.go(self.address("/mail/box/1"))
        self.assertIn("Inbox", self.browser.source, "the session has not ended")

    def test_images_of_a_message_open_no_page_of_ours(self):
        self.deliver("<p>Still unread</p>")
        self.browser.go(self.address("/mail/box/1"))
        unread = self.browser.run("return document.querySelector('.row.unread a.what').getAttribute('href')")
        self.listener.pages["/away.png"] = b""
        self.deliver(f"<p>Harmless</p><img src='{self.listener.address}/a.png'><img src='{unread}'><style>@import '{self.address(unread)}'; p {{ background: url({self.address(unread)}) }}</style>")
        self.open()
        self.browser.run("document.querySelector('button[value=once]').click()")
        until(lambda: self.listener.asked, ANSWER_SECONDS, "the remote image is loaded")
        time.sleep(SETTLE_SECONDS)
        self.browser.go(self.address("/mail/box/1"))
        self.assertTrue(self.browser.run("return document.querySelector(`.row.unread a[href='${arguments[0]}']`) !== null", unread))

    def test_links_of_a_message_leave_the_window_and_get_no_handle_of_it(self):
        self.listener.pages["/page"] = b"<!doctype html><title>-</title><script>document.title = String(window.opener)</script>"
        for target in ("_top", "_parent", "_self", "_blank", "loom"):
            with self.subTest(target=target):
                path = self.open(f"<a id=go rel=opener target={target} href='{self.listener.address}/page'>Harmless</a>")
                before = set(self.browser.windows())
                self.browser.enter(FRAME)
                self.browser.click("#go")
                self.browser.leave()
                time.sleep(SETTLE_SECONDS)
                self.assertEqual(self.browser.address, self.address(path))
                opened = set(self.browser.windows()) - before
                self.assertEqual(len(opened), target in ("_blank", "loom"))
                for window in opened:
                    here = self.browser.window()
                    self.browser.show(window)
                    until(lambda: self.browser.run("return document.title") != "-", ANSWER_SECONDS, "the page")
                    self.assertEqual(self.browser.run("return document.title"), "null")
                    self.browser.close_window()
                    self.browser.show(here)

    def test_every_line_of_a_long_invoice_is_printed(self):
        lines = "".join(f"<tr><td>Item {number}</td><td>{number}.00</td></tr>" for number in range(1, LINES + 1))
        path = self.open(f"<table border=1>{lines}<tr><td>TOTAL</td><td>20100.00</td></tr></table>")
        paper = self.address("/mail/print/" + path.removeprefix("/mail/box/").replace("/", "."))
        for page in (self.address(path), *([paper] if self.has_no_dialogs else [])):
            with self.subTest(page=page):
                self.browser.go(page)
                until(lambda: self.browser.run("return document.querySelector('iframe').style.height"), ANSWER_SECONDS, "the frame")
                text = self.text_of(self.browser.printed())
                self.assertEqual({int(number) for number in re.findall(r"Item ([0-9]+)", text)}, set(range(1, LINES + 1)))
                self.assertIn("20100.00", text)
                for button in ("Reply", "Archive", "Back", "Show in"):
                    self.assertNotIn(button, text)

    def test_a_message_that_is_too_tall_for_paper_says_so(self):
        path = self.open("<div style='height: 40000px'>It computes.</div>")
        if self.has_no_dialogs:
            self.browser.go(self.address("/mail/print/" + path.removeprefix("/mail/box/").replace("/", ".")))
            until(lambda: self.browser.is_there(f"{FRAME} + p.cut"), ANSWER_SECONDS, "the notice")
            self.assertIn("only its beginning is printed", self.browser.text("p.cut"))
            self.assertLessEqual(self.browser.run(SIZES)[0][0], 30_000)

    def text_of(self, pdf):
        done = subprocess.run([program("pdftotext"), "-layout", "-", "-"], input=pdf, capture_output=True, timeout=60, check=True, preexec_fn=die_with_us)
        return done.stdout.decode()


class InChromium(Html, barepost.SharedMachineTest):
    has_no_dialogs = True

    @classmethod
    def begin_browser(cls):
        browser = webdriver.Browser(cls.shared_folder / "chromium", cls.machine.data / "tls" / "certificate.pem")
        # The dialog would stay open, and no other command could print.
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source="window.print = () => (window.timesPrinted = (window.timesPrinted ?? 0) + 1)")
        return browser

    def setUp(self):
        self.browser.resize(DESKTOP)
        self.browser.darken(False)
        super().setUp()

    def test_the_print_dialog_opens_with_the_whole_conversation(self):
        first = Reader.unique("first").replace(" ", ".")
        for number in range(3):
            self.deliver(f"<p>Page {number} of it.</p>", f"Message-ID: <{number or ''}{first}@elsewhere.test>\r\nReferences: <{first}@elsewhere.test>\r\n")
        self.open()
        self.browser.click("//a[.='Print all']")
        until(lambda: self.browser.run("return window.timesPrinted") == 1, ANSWER_SECONDS, "the dialog")
        text = self.text_of(self.browser.printed())
        for number in range(3):
            self.assertIn(f"Page {number} of it.", text)
        self.assertIn(time.strftime("%Y"), text, "a time on paper has its date")
        self.assertEqual(self.browser.text("main > .bar"), "Back")

    def test_a_wide_message_fits_a_narrow_window(self):
        for screen in (DESKTOP, PHONE):
            with self.subTest(screen=screen.name):
                self.browser.resize(screen)
                self.open(NEWSLETTER)
                self.assertFits("the newsletter")
                self.assertLessEqual(*self.browser.run(WIDTHS))
                self.assertEqual(self.browser.run(SIZES)[0][3], 0)
                self.open("<table width=4000><tr><td>It weaves.</td></tr></table>")
                self.assertLessEqual(*self.browser.run(WIDTHS))
                self.assertGreater(self.browser.run(SIZES)[0][3], 100, "it scrolls sideways")

    def test_a_message_without_colours_follows_the_theme(self):
        self.browser.darken(True)
        outlook = "<style>span { color: windowtext } a { color: #0563c1 }</style><p style='background: white'><span>It <a href='https://x.test'>computes</a></span>, <font color=black>always</font>.</p>"
        for what, html, is_dark in (
            ("plain", "<p>It computes.</p>", True), ("black on white", outlook, True), ("newsletter", NEWSLETTER, False),
            ("white sheet", "<html style='background: white'><body style='background: #fff'><p>It computes.</p>", True),
            ("a form with a background", "<form style='background: white'><p>It computes.</p></form>", False),
            ("attributes", "<body bgcolor=navy text=white>It computes.", False), ("red", "<p style='color: red'>It computes.</p>", False),
        ):
            with self.subTest(what=what):
                self.open(html)
                until(lambda: self.browser.is_there("button.shade"), ANSWER_SECONDS, "the script has seen the message")
                for number in range(3):
                    self.assertEqual(self.is_dark(), is_dark == (number % 2 == 0), number)
                    self.assertEqual(self.browser.text("button.shade"), "Show in light colors" if self.is_dark() else "Show in dark colors")
                    self.browser.click("button.shade")
        self.browser.darken(False)
        until(lambda: not self.browser.is_there("button.shade:not([hidden])"), ANSWER_SECONDS, "in light colors there is nothing to choose")

    def is_dark(self):
        """Whether the text in the frame is lighter than what is behind it, as the reader sees it."""
        inverted = self.browser.run("return document.querySelector('iframe').matches('.inverted')")
        plain = self.browser.run("return document.querySelector('iframe').matches('.plain')")
        sheet = "return getComputedStyle(document.documentElement).backgroundColor"
        if plain and not inverted:
            self.assertEqual(self.run_in_frame(sheet), "rgba(0, 0, 0, 0)")
        ink = self.run_in_frame("return getComputedStyle(document.querySelector('p, td, body')).color.match(/\\d+/g).map(Number)")
        return inverted or plain and min(ink) > 150

    def test_blocked_images_take_one_line_and_no_icon(self):
        self.open("<p>Harmless</p><img src='https://x.test/a.png' width=300 height=90 alt='A loom'><img src='https://x.test/b.png' width=1 height=1><img src='https://x.test/c.png'>")
        for screen in (Screen("large", 1440, 900, False), Screen("small", 1024, 768, False)):
            with self.subTest(screen=screen.name):
                self.browser.resize(screen)
                parts = "return [...document.querySelectorAll('.notice.images > :is(span, button)')].map(part => { const box = part.getBoundingClientRect(); return (box.top + box.bottom) / 2 })"
                middles = self.browser.run(parts)
                self.assertEqual(len(middles), 3)
                self.assertLess(max(middles) - min(middles), 2)
                self.assertLess(self.browser.run("return document.querySelector('.notice.images').clientHeight"), 60)
        shown = self.run_in_frame("return [...document.images].map(image => [getComputedStyle(image, '::before').content, getComputedStyle(image).visibility])")
        self.assertEqual(shown, [['"A loom"', "visible"], ['""', "hidden"], ['""', "hidden"]])

    def test_a_long_file_name_and_fields_fit_a_phone(self):
        self.browser.resize(PHONE)
        name = "An-extraordinarily-long-name-without-a-place-to-break_" * 3 + ".pdf"
        self.deliver_as_it_is((
            f"From: a@elsewhere.test\r\nTo: ada@{DOMAIN}\r\nSubject: File\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
            f'--b\r\n\r\nText\r\n--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename="{name}"\r\n\r\nx\r\n--b--\r\n'
        ).encode())
        self.browser.go(self.address("/mail/box/1"))
        self.browser.go(self.address(f"/mail/box/1/{self.browser.run(NEWEST)}"))
        self.assertIn(name, self.browser.text(".attachments"))
        self.assertLessEqual(*self.browser.run(WIDTHS))
        self.assertGreaterEqual(float(self.browser.run("return parseFloat(getComputedStyle(document.querySelector('#search')).fontSize)")), 16)


class InFirefox(Html, barepost.SharedMachineTest):
    @classmethod
    def begin_browser(cls):
        return Firefox(cls.shared_folder / "firefox")


if __name__ == "__main__":
    barepost.main()
