"""A user of the webmail in a browser: a machine with accounts, one Chromium, and the steps that several tests share."""

import re
import ssl
import urllib.parse
import urllib.request

import barepost
import webdriver
from forms import Forms
from mail import DOMAIN, PASSWORD
from webdriver import DESKTOP, named

HTTPS = 443
# The UID of the newest message in a list.
NEWEST = "return Math.max(...[...document.querySelectorAll('.row input[name=key]')].map(box => Number(box.value.split('.')[1])))"
# Numbers that make the subjects of one test file's messages unique.
_numbers = iter(range(1, 1_000_000))


def row(subject, inside=""):
    """The row of a list with this subject, or an element inside it."""
    return f"//li[contains(@class, 'row')][.//span[@class='subject'][.={named(subject)}]]{inside}"


class Reader(barepost.SharedMachineTest):
    """Tests that share a machine and a browser. Each begins without a session."""

    scripts, screen = True, DESKTOP

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        certificate = cls.machine.data / "tls" / "certificate.pem"
        cls.browser = webdriver.Browser(cls.shared_folder / "browser", certificate, cls.screen, cls.scripts)
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def hold(cls, user, seconds):
        """Sets the number of seconds for which a user can undo sending."""
        certificate = cls.machine.data / "tls" / "certificate.pem"
        forms = Forms(cls.address(""), certificate, user)
        forms.hold(seconds)
        forms.post("/mail/logout")

    def setUp(self):
        super().setUp()
        self.browser.leave()
        self.browser.go("about:blank")
        self.browser.forget()

    @classmethod
    def address(cls, path):
        return f"https://localhost:{cls.machine.ports + HTTPS}{path}"

    @staticmethod
    def unique(name):
        """A subject that no other message has."""
        return f"{name} {next(_numbers)}"

    def deliver(self, name, text="It computes.", kind="text/plain", to="ada"):
        """Delivers a message from another server. Returns its subject."""
        subject = self.unique(name)
        message = (
            f"From: Charles Babbage <charles@elsewhere.test>\r\nTo: {to}@{DOMAIN}\r\nSubject: {subject}\r\n"
            f"MIME-Version: 1.0\r\nContent-Type: {kind}; charset=utf-8\r\n\r\n{text}\r\n"
        )
        self.deliver_as_it_is(message.encode(), to)
        return subject

    def deliver_as_it_is(self, message, to="ada"):
        reply = self.machine.deliver("charles@elsewhere.test", [f"{to}@{DOMAIN}"], message)
        self.assertEqual(reply.code, 250, reply)

    def submit_login(self, user, password=PASSWORD):
        """Fills in the login form and submits it."""
        self.browser.write("#name", f"{user}@{DOMAIN}")
        self.browser.type("#password", password)
        self.browser.follow("button[type=submit]")

    def log_in(self, user):
        """Logs in as a user, after the end of any other session."""
        self.browser.forget()
        self.browser.go(self.address("/mail/login"))
        self.submit_login(user)
        self.assertEqual(self.browser.text("h1"), "Inbox")

    def log_out_elsewhere(self):
        """Ends the session by a request outside this browser."""
        cookies = self.browser.cookies()
        answer = self.ask("/mail/", cookies)
        token = re.search(r'name="token" value="([^"]+)"', answer)[1]
        self.ask("/mail/logout", cookies, urllib.parse.urlencode({"token": token}).encode())

    def log_in_elsewhere(self, user):
        """Logs in in another window of this browser."""
        here = self.browser.command("GET", "window")
        other = self.browser.command("POST", "window/new", type="tab")["handle"]
        self.browser.command("POST", "window", handle=other)
        self.log_in(user)
        self.browser.command("DELETE", "window")
        self.browser.command("POST", "window", handle=here)

    def ask(self, path, cookies, form=None):
        """The page at an address, fetched without the browser."""
        return self.fetch(path, cookies, form)[1].decode()

    def fetch(self, path, cookies, form=None):
        """The header fields and the bytes at an address, fetched without the browser. Errors: urllib's, if the page does not
        exist."""
        certificate = self.machine.data / "tls" / "certificate.pem"
        said = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)
        request = urllib.request.Request(self.address(path), form, {"Cookie": said})
        with urllib.request.urlopen(request, timeout=60, context=ssl.create_default_context(cafile=certificate)) as answer:
            return answer.headers, answer.read()

    def box(self, name):
        """Opens a mailbox."""
        self.browser.follow(f"//nav//a[span[1]={named(name)}]")
        self.assertEqual(self.browser.text("h1"), name)

    def open(self, subject):
        """Opens a message from the list."""
        self.browser.follow(row(subject, "//a"))

    def choose(self, subject):
        self.browser.click(row(subject, "//input[@type='checkbox']"))
