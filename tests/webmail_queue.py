"""The queue of outgoing messages on the administrators' page, and the sender's outbox. A part of `webmail_sending.py`.

Administrators see, hold, release, retry and delete messages. Mail for one domain is relayed to a host on loopback, which
defers the mail until it is ready. No name server answers for other domains.
"""

import socketserver
import threading
import urllib.error

import barepost
from barepost import options
from forms import Forms
from mail import DOMAIN
from processes import until
from webdriver import ANSWER_SECONDS, DESKTOP, ELEMENT, PHONE, named
from webmail_reader import Reader

QUEUE = "/mail/queue"
ADMINISTRATOR = "grace"
# The longest time of a delivery attempt, and of a look-up at a name server that does not answer.
WAY_SECONDS = 90
# The entries on a page of the queue.
LINES = 20


class Host:
    """A mail server on loopback, reachable through QEMU's gateway. It defers all recipients until it `is_ready`, and records
    the recipients of accepted messages."""

    def __init__(self):
        self.words, self.taken = "450 4.2.0 The mailbox is being moved", []
        self.is_ready = False
        host = self

        class Handler(socketserver.StreamRequestHandler):
            def say(self, line):
                self.wfile.write(f"{line}\r\n".encode())

            def handle(self):
                recipients = []
                self.say("220 far.test")
                while line := self.rfile.readline().decode().strip():
                    match line[:4].upper():
                        case "RCPT" if not host.is_ready:
                            self.say(host.words)
                        case "RCPT":
                            recipients.append(line.partition("<")[2].partition(">")[0])
                            self.say("250 Well")
                        case "DATA" if not recipients:
                            self.say("503 No recipients")
                        case "DATA":
                            self.say("354 Go on")
                            while self.rfile.readline() not in (b".\r\n", b""):
                                pass
                            host.taken += recipients
                            recipients = []
                            self.say("250 Taken")
                        case "QUIT":
                            self.say("221 Goodbye")
                            return
                        case _:
                            self.say("250 far.test")

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # The address at which the machine reaches this host.
        self.place = f"10.0.2.2:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def configuration(host):
    """The configuration of a machine with an administrator. It relays mail for far.test to `host`."""
    address = f'address  = "{ADMINISTRATOR}@{DOMAIN}"'
    assert address in barepost.CONFIGURATION
    return barepost.CONFIGURATION.replace(address, f"{address}\nadmin = true") + barepost.ACCESS_FIXED + f'''
[network]
address = "10.0.2.15/24"
gateway = "10.0.2.2"
dns = ["10.0.2.99"]

[[relay.domain]]
domains = ["far.test"]
smarthost = "{host.place}"
tls = "none"
'''


def card(recipients, inside=""):
    """The card of the message to these recipients, or an element inside it."""
    return f"//section[h2[.={named(recipients)}]]{inside}"


def do(what, recipients=None):
    """The button for the action `what` on the message to `recipients`, or on all messages for the typed domain."""
    button = f"//button[@name='do'][@value='{what}']"
    return card(recipients, button) if recipients else f"//form[.//input[@id='domain']]{button}"


class WithHost:
    """A machine with an administrator, and a host that receives mail."""

    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.close)
        cls.configuration = configuration(cls.host)
        super().setUpClass()


class Queue(WithHost):
    """The queue in one kind of browser, on a desktop and on a phone."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hold("ada", 0)
        cls.ada, cls.administrator = (Forms(cls.address(""), cls.machine.data / "tls" / "certificate.pem", user) for user in ("ada", ADMINISTRATOR))

    def setUp(self):
        super().setUp()
        self.host.is_ready = False

    def on_each_screen(self):
        """The screens to test. With --quick, scripts are on only on the desktop, and off only on the phone."""
        for screen in (DESKTOP, PHONE):
            if options.quick and self.scripts != (screen is DESKTOP):
                continue
            self.browser.resize(screen)
            yield
        self.browser.resize(DESKTOP)

    def send(self, *recipients):
        """Ada sends a message to the recipients."""
        self.assertIn("Message sent.", self.ada.post("/mail/compose", to=", ".join(recipients), subject=self.unique("Far"), text="It computes.", do="send"))

    def look(self):
        self.browser.go(self.address(QUEUE))
        self.assertEqual(self.browser.text("h1"), "Queue")
        return self.browser.text("main")

    def look_until(self, words, recipients=None):
        """Reloads the page until it has the text `words`, or until the card of the message to `recipients` has it."""
        where = card(recipients) if recipients else "main"

        def stands():
            self.look()
            return self.browser.is_there(where) and words in self.browser.text(where)

        until(stands, WAY_SECONDS, words, pause=0.2)

    def press(self, what, recipients=None):
        """Presses a button, and returns the notice on the next page."""
        if what in ("return", "delete"):
            self.browser.click(f"{do(what, recipients)}/ancestor::details/summary")
        self.browser.follow(do(what, recipients))
        self.assertEqual(self.browser.text("h1"), "Queue")
        return self.browser.text(".notice")

    def press_for(self, what, domain):
        self.browser.write("#domain", domain)
        return self.press(what)

    def delete(self, domain):
        """An administrator deletes all messages for the domain in another session."""
        self.assertIn("deleted.", self.administrator.post(QUEUE, here=QUEUE, domain=domain, do="delete"))

    def test_only_administrators_find_the_queue(self):
        for _ in self.on_each_screen():
            browser = self.browser
            self.log_in(ADMINISTRATOR)
            browser.click(".account summary")
            browser.follow("//a[.='Queue']")
            self.assertEqual(browser.address, self.address(QUEUE))
            self.assertIn("The queue is empty.", browser.text("main"))
            self.log_in("ada")
            browser.click(".account summary")
            self.assertIn("Settings", browser.text(".account"))
            self.assertNotIn("Queue", browser.text(".account"))
            browser.go(self.address(QUEUE))
            self.assertFalse(browser.is_there("//h1[.='Queue']"))
            for form, code in ((None, 404), (b"do=delete&domain=far.test", 403)):
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    self.fetch(QUEUE, browser.cookies(), form)
                refused.exception.close()
                self.assertEqual(refused.exception.code, code)

    def test_a_deferred_message_is_retried_held_and_released(self):
        for number, _ in enumerate(self.on_each_screen()):
            recipients = f"bob{number}@far.test"
            self.host.is_ready = False
            self.send(recipients)
            self.log_in(ADMINISTRATOR)
            self.look_until("1 attempt", recipients)
            about = self.browser.text(card(recipients))
            for words in ("Next attempt: ", f"from ada@{DOMAIN}", "Last attempt: ", self.host.words):
                self.assertIn(words, about)
            self.assertIn("The message was scheduled for an immediate retry.", self.press("retry", recipients))
            self.look_until("2 attempts", recipients)
            self.assertIn("The message was held.", self.press("hold", recipients))
            self.assertIn("Held", self.browser.text(card(recipients)))
            self.assertIn("1 message in the queue: 1 held", self.browser.text("main"))
            self.assertFalse(self.browser.is_there(do("retry", recipients)))
            self.host.is_ready = True
            self.assertIn("The message was released.", self.press("release", recipients))
            until(lambda recipients=recipients: recipients in self.host.taken, WAY_SECONDS, "the message leaves")
            self.look_until("The queue is empty.")

    def test_the_sender_of_a_deleted_message_is_told_on_request(self):
        for number, _ in enumerate(self.on_each_screen()):
            told, untold = f"carol{number}@silent.test", f"dave{number}@silent.test"
            self.send(told)
            self.send(untold)
            self.log_in(ADMINISTRATOR)
            self.look_until(told)
            self.look_until(untold)
            self.assertIn("The message was returned to its sender.", self.press("return", told))
            until(lambda told=told: self.look() and not self.browser.is_there(card(told)), ANSWER_SECONDS, "its report is made")
            self.assertIn("The message was deleted.", self.press("delete", untold))
            self.assertIn("The queue is empty.", self.browser.text("main"))
            reports = until(lambda number=number: len(found := self.machine.mailbox("ada")) > number and found, ANSWER_SECONDS, "a report")
            self.assertEqual(len(reports), number + 1)
            self.assertIn(told.encode(), reports[-1].raw)

    def test_all_messages_for_a_domain_are_handled_at_once(self):
        for _ in self.on_each_screen():
            domains = [f"silent{number}.test" for number in range(LINES)]
            self.send(*(f"eve@{domain}" for domain in domains))
            self.send("fred@far.test", *(f"x@{domain}" for domain in domains[:2]))
            self.send("gerda@far.test")
            self.log_in(ADMINISTRATOR)
            count = LINES + 4
            self.look_until(f"{count} messages in the queue")
            self.assertEqual(len(self.browser.all("main section")), LINES)
            self.browser.follow("//a[.='Next page']")
            self.assertEqual(len(self.browser.all("main section")), count - LINES)
            self.assertIn("2 messages for far.test were held.", self.press_for("hold", "Far.test"))
            self.assertIn(f"{count} messages in the queue: 2 held", self.browser.text("main"))
            self.browser.follow("//a[.='First page']")
            self.assertIn("no messages for elsewhere.test to which this applies", self.press_for("release", "elsewhere.test"))
            self.assertIn("2 messages for far.test were released.", self.press_for("release", "far.test"))
            # After the release an attempt is in progress. When it is over, the messages wait and can be retried.
            until(lambda: "2 messages for far.test were scheduled for an immediate retry." in self.press_for("retry", "far.test"), WAY_SECONDS, "they are tried", pause=0.2)
            for domain in domains:
                self.delete(domain)
            self.look()
            self.assertIn("2 messages for far.test were deleted.", self.press_for("delete", "far.test"))
            self.assertIn("The queue is empty.", self.browser.text("main"))
            self.assertFalse(self.browser.is_there("#domain"), "there is no form without entries")


class QueueWithScripts(Queue, Reader):
    def test_the_focus_stays_with_the_changed_message(self):
        self.send("first@silent.test")
        self.send("second@other.test")
        self.log_in(ADMINISTRATOR)
        browser = self.browser
        for recipients in ("first@silent.test", "second@other.test"):
            self.look_until(recipients)
        browser.run("window.mark = 1")
        focused = "return [document.activeElement.value ?? document.activeElement.localName, document.activeElement.closest('section')?.querySelector('h2').textContent]"
        recipients = "second@other.test"
        browser.run("arguments[0].focus()", {ELEMENT: browser.one(do("hold", recipients))})
        for then in (["release"], ["retry", "hold"]):
            browser.follow_keys("Enter")
            button, where = browser.run(focused)
            self.assertEqual((where, button in then), (recipients, True), button)
        self.assertEqual(browser.run("return window.mark"), 1, "nothing was loaded")
        self.press_for("hold", "silent.test")
        self.assertEqual(browser.run(focused), ["hold", None], "on the form for the domain")
        self.press("delete", recipients)
        self.assertEqual(browser.run(focused), ["main", None])
        self.press("delete", "first@silent.test")

    def test_the_outbox_is_listed_while_it_is_not_empty(self):
        outbox = "//nav//a[span[1]='Outbox']"
        self.log_in("ada")
        browser = self.browser
        browser.follow("a.compose")
        browser.run("window.mark = 1")
        self.assertFalse(browser.is_there(outbox))
        self.send("henry@silent.test")
        until(lambda: browser.is_there(outbox), ANSWER_SECONDS, "it shows")
        names = browser.run("return [...document.querySelectorAll('nav.side li')].map(one => one.textContent.trim().split(' ')[0])")
        self.assertEqual(names[-2:], ["Trash", "Outbox"])
        self.box("Outbox")
        self.assertTrue(browser.is_there("li.row"))
        self.delete("silent.test")
        until(lambda: "No messages." in browser.text("main"), ANSWER_SECONDS, "nothing is in it")
        self.assertTrue(browser.is_there(outbox), "it is open")
        self.box("Drafts")
        self.assertFalse(browser.is_there(outbox))
        self.send("henry@silent.test")
        until(lambda: browser.is_there(outbox), ANSWER_SECONDS, "it shows again")
        self.delete("silent.test")
        browser.wait_until_gone(outbox)
        self.assertEqual(browser.run("return window.mark"), 1, "nothing was loaded")


class QueueWithoutScripts(Queue, Reader):
    scripts = False
