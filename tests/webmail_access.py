"""The promise: axe-core finds no page of the webmail that somebody could not use, at a desk and on a phone, in light and in dark colours.

WCAG 2.2, levels A and AA, and what axe calls best practice. What stands in the frame of a letter's HTML is its sender's.

Takes a minute under TCG.
"""

import barepost
import webmail_letters
from mail import DOMAIN
from processes import ROOT
from webdriver import DESKTOP, PHONE
from webmail_reader import Reader

AXE = ROOT / "target" / "tools" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOK = """
const [rules, done] = arguments;
axe.run(document, { runOnly: rules, iframes: false }).then(
  found => done({ passes: found.passes.length, violations: found.violations.map(one => [one.id, one.nodes.map(node => node.html.slice(0, 200))]) }),
  error => done({ passes: 0, violations: [String(error)] }),
);
"""


class Access(Reader):
    def look(self, what):
        """At the page as it is now, at each width, in light and in dark."""
        axe = AXE.read_text()
        for screen in (DESKTOP, PHONE):
            for is_dark in (False, True):
                with self.subTest(page=what, screen=screen.name, dark=is_dark):
                    self.browser.resize(screen)
                    self.browser.darken(is_dark)
                    self.browser.run(axe)
                    found = self.browser.run_late(LOOK, RULES)
                    self.assertEqual(found["violations"], [])
                    self.assertGreater(found["passes"], 10, "it has looked")
                    self.assertLessEqual(*self.browser.run("return [document.documentElement.scrollWidth, innerWidth]"), "nothing is beside the page")
        self.browser.resize(DESKTOP)

    def test_everybody_can_use_every_page(self):
        webmail_letters.deliver(self.machine)
        markup = self.deliver("Markup", "<p>It <b>weaves</b>.</p>", "text/html")
        browser = self.browser
        browser.go(self.address("/mail/login"))
        self.look("login")
        self.say_who("ada", "guess")
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
        for page in ("settings", "boxes"):
            browser.go(self.address(f"/mail/{page}"))
            self.look(page)

    def test_everybody_can_use_conversations_long_letters_and_the_help_on_keys(self):
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
        browser.press("?")
        self.assertTrue(browser.is_there("dialog[open]"))
        self.look("help on keys")
        browser.press("Escape")
        self.open(subject)
        self.assertEqual(len(browser.all("article")), 3)
        self.look("conversation")
        browser.go(self.address("/mail/"))
        self.open(long)
        self.assertTrue(browser.is_there("//a[.='View entire message']"))
        self.look("a long letter")


if __name__ == "__main__":
    barepost.main()
