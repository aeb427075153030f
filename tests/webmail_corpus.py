"""The promise: four hundred hostile messages, and those of CPython's own tests, run nothing, fetch nothing and break no page.

Chromium shows each message in the list, on its page, printed, and quoted in a reply. The page with its source has the
unchanged bytes. Its files are downloads with no header fields except ours.

It takes five to ten minutes under TCG.
"""

import itertools
import pathlib
import re

import barepost
from clients_exact import without_return_path
from hostile_messages import in_lines, messages
from mail import DOMAIN

from webmail_hostile import Watched

# The messages of CPython's tests, as Debian packages them. `./barepost test` puts them here.
OF_PYTHON = pathlib.Path(__file__).parent.parent / "target/tools/python-messages"
# Views of a message, by the part of the address.
PAGES = ("print", "source", "download")
# Messages with so much HTML that the page shows only the beginning.
LONG = ("structure: a hundred thousand tags", "structure: more nested tables", "structure: a line of 2 MB")
# The UIDs of the messages, in the order of their arrival.
UIDS = itertools.count(1)


class Corpus(Watched):
    def test_hostile_messages_run_nothing_and_break_no_page(self):
        here = self.listener.address.removeprefix("http://")
        # A message with a NUL byte is refused on arrival (RFC 5321 section 4.5.2).
        corpus = [(name, message) for name, message in messages(here) if b"\0" not in message]
        self.assertGreater(len(corpus), 300)
        self.read_all(corpus, here)

    def test_messages_of_the_tests_of_cpython_break_no_page(self):
        files = sorted(OF_PYTHON.glob("*.txt"))
        self.assertGreater(len(files), 40)
        self.read_all([(file.name, in_lines(file.read_bytes())) for file in files], "nowhere.test")

    def read_all(self, corpus, here):
        """Delivers a few messages at a time, so that each appears on the first page of the list."""
        self.log_in("barbara")
        for start in range(0, len(corpus), 20):
            some = corpus[start:start + 20]
            addresses = [self.deliver_in_one_piece(message) for _, message in some]
            self.browser.go(self.address("/mail/box/1"))
            self.settle()
            self.assertNothingRan("the list")
            for (name, message), address in zip(some, addresses):
                with self.subTest(message=name):
                    self.read(name, message, address, here)

    def deliver_in_one_piece(self, message):
        """Delivers a message unchanged, with BDAT: lines may be long and contain any octet. Returns the address of its page,
        which is known because Barbara gets no other messages."""
        with self.machine.smtp() as session:
            session.ehlo()
            reply = session.deliver_in_chunks("mallory@elsewhere.test", [f"barbara@{DOMAIN}"], message, len(message))
        self.assertEqual(reply.code, 250, reply)
        return f"/mail/box/1/{next(UIDS)}"

    def read(self, name, message, address, here):
        key = address.removeprefix("/mail/box/").replace("/", ".")
        self.browser.go(self.address(address))
        self.settle()
        self.assertTrue(self.browser.is_there("h1.subject"), f"{name}: {self.browser.text()[:200]}")
        self.assertNothingRan(name)
        for number in range(len(self.browser.all("iframe.sheet-of-mail"))):
            self.browser.enter(f"iframe.sheet-of-mail:nth-of-type({number + 1})")
            if here.encode() not in message and b"/mail/" not in message:
                self.browser.run("document.getElementById('go')?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, composed: true, view: window }))")
            self.assertNothingRan(name)
            self.browser.leave()
        whole = re.findall(r'href="(/mail/whole/[^"]+)"', self.browser.source)
        self.assertEqual(bool(whole), name in LONG, f"{name}: a link leads to all of a long message")
        for page in (f"/mail/print/{key}", f"/mail/compose?reply={key}"):
            self.browser.go(self.address(page))
            self.settle()
            self.assertNothingRan(f"{name}: {page}")
        for page in whole:
            self.browser.go(self.address(page))
            self.assertNothingRan(f"{name}: {page}")
            self.browser.back()
            self.settle()
        self.assertEqual(self.listener.asked, [], name)
        cookies = self.browser.cookies()
        for page in PAGES:
            _, said = self.fetch(f"/mail/{page}/{key}", cookies)
            if page == "download":
                self.assertTrue(said.endswith(without_return_path(message)), f"{name}: its bytes are unchanged")
        page = self.ask(address, cookies)
        for part in sorted(set(re.findall(r'"(/mail/part/[^"]+)"', page)))[:5]:
            header, _ = self.fetch(part, cookies)
            self.assertTrue(header["Content-Disposition"].startswith("attachment"), name)
            self.assertEqual(header["X-Content-Type-Options"], "nosniff", name)
            self.assertNotIn("Set-Cookie", header, name)


if __name__ == "__main__":
    barepost.main()
