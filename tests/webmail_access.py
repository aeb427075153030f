"""The promise: axe-core finds no accessibility fault on any page of the webmail.

Pages are checked on a desktop and on a phone, in light and in dark colours, with scripts and without. The rules are those
of WCAG 2.2, levels A and AA, and axe's best practices. The HTML in a message's frame is not checked, since the sender
has written it. If the browser runs no scripts of pages, the driver injects axe.

It takes two minutes under TCG.
"""

import barepost
import webmail_messages
from mail import DOMAIN
from processes import ROOT, until
from webdriver import ANSWER_SECONDS, DESKTOP, PHONE
from webmail_queue import ADMINISTRATOR, QUEUE, WithHost
from webmail_reader import Reader

AXE = ROOT / "target" / "tools" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# If the browser runs no scripts of pages, it also runs no timers. So tasks that axe defers run after its current task.
AT_ONCE = "window.setTimeout = task => { Promise.resolve().then(task); return 0; };"
LOOK = """
window.found = null;
axe.run(document, { runOnly: arguments[0], iframes: false }).then(
  found => (window.found = { passes: found.passes.length, violations: found.violations.map(one => [one.id, one.nodes.map(node => node.html.slice(0, 200))]) }),
  error => (window.found = { passes: 0, violations: [String(error)] }),
);
"""


class Access(WithHost):
    """The pages in one kind of browser. No name server answers, so messages to other servers wait."""

    def look(self, what, least=10):
        """Checks the current page at each width, in light and in dark colours."""
        axe = AXE.read_text()
        for screen in (DESKTOP, PHONE):
            for is_dark in (False, True):
                with self.subTest(page=what, screen=screen.name, dark=is_dark):
                    self.browser.resize(screen)
                    self.browser.darken(is_dark)
                    self.browser.run(axe if self.scripts else AT_ONCE + axe)
                    self.browser.run(LOOK, RULES)
                    found = until(lambda: self.browser.run("return window.found"), ANSWER_SECONDS, "axe has looked")
                    self.assertEqual(found["violations"], [])
                    self.assertGreater(found["passes"], least, "it has looked")
                    self.assertLessEqual(*self.browser.run("return [document.documentElement.scrollWidth, innerWidth]"), "the page is not wider than the window")
        self.browser.resize(DESKTOP)

    def test_every_page_is_accessible(self):
        webmail_messages.deliver(self.machine)
        markup = self.deliver("Markup", "<p>It <b>weaves</b>.</p>", "text/html")
        browser = self.browser
        browser.go(self.address("/mail/login"))
        self.look("login")
        self.submit_login("ada", "guess")
        self.look("login, refused")
        self.log_in("ada")
        self.look("list")
        self.open("The Engine, and what it could weave")
        self.look("message")
        browser.follow("//a[.='Reply']")
        self.look("reply")
        browser.write("#to", f"bob@{DOMAIN}")
        browser.follow("button[value=send]")
        self.look("compose, refused")
        browser.go(self.address("/mail/"))
        self.open(markup)
        self.look("message of HTML")
        browser.follow("button[value=archive]")
        self.look("list with a notice")
        self.box("Trash")
        self.look("empty list")
        browser.go(self.address("/mail/compose"))
        self.look("compose")
        browser.go(self.address("/mail/search?q=engine"))
        self.look("search")
        browser.go(self.address("/mail/boxes"))
        browser.type("#new", self.unique("Poems"))
        browser.follow("button[value=make]")
        self.look("mailboxes")
        browser.go(self.address("/mail/settings"))
        browser.follow("button[value=save]")
        self.look("settings")
        browser.go(self.address("/mail/nothing"))
        self.look("a missing page", least=5)

    def test_pages_of_waiting_messages_are_accessible(self):
        self.hold(ADMINISTRATOR, 30)
        self.log_in(ADMINISTRATOR)
        browser = self.browser
        subject = self.unique("Waits")
        browser.go(self.address("/mail/compose"))
        browser.type("#to", f"ada@{DOMAIN}")
        browser.type("#subject", subject)
        browser.follow("button[value=send]")
        self.look("list with an undo button")
        self.hold(ADMINISTRATOR, 0)
        browser.go(self.address("/mail/compose"))
        browser.type("#to", "charles@elsewhere.test")
        browser.type("#subject", self.unique("Far"))
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))

        def waits():
            browser.go(self.address("/mail/"))
            return browser.is_there("//nav//a[span[1]='Outbox']")

        until(waits, ANSWER_SECONDS, "what waits is shown")
        self.box("Outbox")
        self.look("outbox")
        browser.follow("li.row a.what")
        self.look("a message in the outbox")
        here = browser.address
        browser.go(self.address(QUEUE))
        self.look("queue")
        browser.follow("button[value=hold]")
        browser.click("section summary")
        self.look("queue, something held and a notice")
        browser.write("#domain", "silent.test")
        browser.follow("form[action='/mail/queue']:has(#domain) button[value=retry]")
        self.look("queue, nothing done")
        browser.go(here)
        shown = browser.attribute("form.bar input[name=key]", "value")
        for page in ("source", "print"):
            browser.go(self.address(f"/mail/{page}/{shown}"))
            self.assertIn("Far", browser.text())
            self.look(page)

    def test_conversations_and_long_messages_are_accessible(self):
        browser = self.browser
        subject = self.unique("Loom")
        for number, text in enumerate(("It weaves.", "Does it?", "It does.")):
            answers = "" if number == 0 else f"References: <0.{subject.replace(' ', '.')}@elsewhere.test>\r\n"
            self.deliver_as_it_is((
                f"From: Mary <mary@elsewhere.test>\r\nTo: ada@{DOMAIN}\r\nSubject: {subject}\r\nMessage-ID: <{number}.{subject.replace(' ', '.')}@elsewhere.test>\r\n"
                f"{answers}\r\n{text}\r\n"
            ).encode())
        long = self.deliver("Long", "<p>It computes.</p>" * 10_000, "text/html")
        self.log_in("ada")
        self.open(subject)
        self.assertEqual(len(browser.all("article")), 3)
        self.look("conversation")
        browser.go(self.address("/mail/"))
        self.open(long)
        self.assertTrue(browser.is_there("//a[.='View entire message']"))
        self.look("a long message")


class AccessWithScripts(Access, Reader):
    def test_the_key_list_and_the_draft_notice_are_accessible(self):
        self.log_in("ada")
        browser = self.browser
        browser.press("?")
        self.assertTrue(browser.is_there("dialog[open]"))
        self.look("help on keys")
        browser.press("Escape")
        browser.go(self.address("/mail/compose"))
        browser.type("#text", "It is kept by itself.")
        until(lambda: browser.value("input[name=draft]"), ANSWER_SECONDS, "it is kept")
        self.look("compose, kept")


class AccessWithoutScripts(Access, Reader):
    scripts = False


if __name__ == "__main__":
    barepost.main()
