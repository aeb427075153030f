"""Hostile messages do nothing in a browser that shows them.

Each message tries to run a script that marks the page, changes its title or opens a dialog, or tries to fetch something
from our server on loopback. On a page of that server the same HTML succeeds, which shows that the attempts are real.
Images are shown only when the user requests them.
"""

import contextlib
import http.server
import threading

from mail import DOMAIN
from processes import until
from webdriver import ANSWER_SECONDS
from webmail_reader import Reader, row

MARK = "top.pwned=pwned=1;document.title='pwned'"
PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\5\0\1\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82"

# HTML that runs a script, by the means.
RUNNING = {
    "a script": f"<script>{MARK}</script>",
    "an error of a picture": f'<img src="data:," onerror="{MARK}">',
    "the load of a drawing": f'<svg onload="{MARK}"></svg>',
    "a script in a drawing": f"<svg><script>{MARK}</script></svg>",
    "a body's load": f'<body onload="{MARK}">',
    "a focus that is taken": f'<input autofocus onfocus="{MARK}">',
    "details that open": f'<details open ontoggle="{MARK}"><summary>More</summary>Text</details>',
    "an animation": f'<style>@keyframes a {{}}</style><p style="animation: a 1ms" onanimationstart="{MARK}">Text</p>',
    "a frame with a script": f'<iframe srcdoc="<script>parent.{MARK}</script>"></iframe>',
    "a frame with an address that is a script": f'<iframe src="javascript:parent.pwned=1"></iframe>',
    "a form that sends itself to a script": f'<form action="javascript:void({MARK.replace(";", ",")})"><input type=submit></form><script>document.forms[0].submit();{MARK}</script>',
    "the end of what it stands in": f"</textarea></title></style></iframe></p><script>{MARK}</script>",
    "a media source that fails": f'<video><source onerror="{MARK}" src="data:,"></video>',
}

# HTML that fetches something from HERE, by the means.
FETCHING = {
    "a picture": '<img src="HERE/a.png">',
    "a set of pictures": '<img srcset="HERE/a.png 1x, HERE/b.png 2x">',
    "a style sheet": '<link rel="stylesheet" href="HERE/a.css">',
    "an imported style sheet": '<style>@import "HERE/a.css";</style>',
    "a background": '<p style="background: url(HERE/a.png)">Text</p>',
    "a font": '<style>@font-face { font-family: a; src: url(HERE/a.woff) } p { font-family: a }</style><p>Text</p>',
    "another page, at once": '<meta http-equiv="refresh" content="0; url=HERE/a">',
    "a frame": '<iframe src="HERE/a"></iframe>',
    "an object": '<object data="HERE/a.png" type="image/png"></object>',
    "a plugin": '<embed src="HERE/a.png" type="image/png">',
    "a relative picture and a base": '<base href="HERE/"><img src="a.png">',
    "a film": '<video src="HERE/a.mp4" poster="HERE/a.png" autoplay></video>',
    "a sound": '<audio src="HERE/a.mp3" autoplay></audio>',
    "a drawing's picture": '<svg><image href="HERE/a.png" width="9" height="9"/></svg>',
    "a button that is a picture": '<form action="HERE/a"><input type="image" src="HERE/a.png"></form>',
    "a preloaded picture": '<link rel="preload" as="image" href="HERE/a.png">',
}

# Messages with attempts outside the shown HTML, in the header and in the body.
ATTEMPT = f"<script>{MARK}</script><img src=x onerror={MARK}>"
MESSAGES = {
    "a subject": (f"From: a@elsewhere.test\r\nSubject: {ATTEMPT}", "Text"),
    "an encoded subject": ("From: a@elsewhere.test\r\nSubject: =?utf-8?q?=22=27=3E=3Cscript=3Epwned=3D1=3C/script=3E?=", "Text"),
    "an attribute": ("From: a@elsewhere.test\r\nSubject: \" autofocus onfocus=\"pwned=1\" x=\"", "Text"),
    "a name": (f'From: "{ATTEMPT}" <a@elsewhere.test>\r\nSubject: Name', "Text"),
    "an address": (f'From: "\\"><svg/onload=pwned=1>"@elsewhere.test\r\nSubject: Address', "Text"),
    "a text": ("From: a@elsewhere.test\r\nSubject: Text", f"{ATTEMPT}\r\njavascript:pwned=1\r\nhttp://a.test/\"onmouseover=\"pwned=1\"\r\n"),
    "a text that is called text and is not": ("From: a@elsewhere.test\r\nSubject: Sniffed\r\nContent-Type: text/plain", f"<!doctype html><html>{ATTEMPT}</html>"),
    "HTML in another alphabet": ("From: a@elsewhere.test\r\nSubject: Seven\r\nContent-Type: text/html; charset=utf-7", f"+ADw-script+AD4-{MARK}+ADw-/script+AD4-"),
}


class Listener:
    """A server on loopback that records requests, and has a response for every path."""

    def __init__(self):
        self.asked, self.pages = [], {}
        listener = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path in listener.pages:
                    kind, body = "text/html; charset=utf-8", listener.pages[self.path]
                else:
                    listener.asked.append(self.path)
                    kind, body = ("image/png", PICTURE) if self.path.endswith(".png") else ("text/css", b"p { color: red }")
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Watched(Reader):
    """Tests that detect whether messages run or fetch something."""

    def setUp(self):
        super().setUp()
        self.listener = Listener()
        self.addCleanup(self.listener.close)

    def settle(self):
        """Waits until the attempts of the page are over: for a timer, and then for a response of the server."""
        self.browser.run_late(
            "const done = arguments[0]; setTimeout(() => fetch('/mail/style.css', { cache: 'no-store' }).then(done, done), 0)"
        )

    def assertNothingRan(self, title):
        """Asserts that nothing ran, neither in the page nor in a message's frame."""
        self.assertEqual(self.browser.run("return [typeof pwned, document.title.startsWith('pwned')]"), ["undefined", False], title)

    def try_frame(self, what):
        """Checks the frame of a message's HTML."""
        self.browser.enter("iframe.sheet-of-mail")
        self.assertIn("Harmless", self.browser.source, "the message is shown")
        self.assertNothingRan(what)
        self.browser.leave()


class Hostile(Watched):
    def test_hostile_html_succeeds_outside_the_webmail(self):
        """Control: otherwise the tests below would prove nothing."""
        for number, (what, html) in enumerate((RUNNING | FETCHING).items()):
            with self.subTest(what=what):
                del self.listener.asked[:]
                path = f"/page/{number}"
                self.listener.pages[path] = f"<!doctype html>Harmless {html}".replace("HERE", self.listener.address).encode()
                self.browser.go(self.listener.address + path)
                has_run = "return top.pwned === 1 || document.title === 'pwned'"
                until(
                    lambda: self.browser.run(has_run) if what in RUNNING else [path for path in self.listener.asked if "favicon" not in path],
                    ANSWER_SECONDS, what,
                )

    def test_html_of_a_message_runs_nothing_and_fetches_nothing(self):
        attempts = RUNNING | FETCHING
        subjects = {
            what: self.deliver("Hostile", f"<p>Harmless</p>{html}".replace("HERE", self.listener.address), "text/html")
            for what, html in attempts.items()
        }
        self.log_in("ada")
        addresses = {what: self.browser.attribute(row(subject, "//a"), "href") for what, subject in subjects.items()}
        for what, address in addresses.items():
            with self.subTest(what=what):
                self.browser.go(self.address(address) if address.startswith("/") else address)
                self.settle()
                self.assertNothingRan(what)
                self.try_frame(what)
                self.assertEqual(self.listener.asked, [], what)

    def test_an_entire_long_message_runs_nothing(self):
        attempts = "".join((RUNNING | FETCHING).values()).replace("HERE", self.listener.address)
        subject = self.deliver("Long", "<p>Harmless</p>" * 8000 + "<p>The end.</p>" + attempts, "text/html")
        self.log_in("ada")
        self.open(subject)
        self.browser.enter("iframe.sheet-of-mail")
        self.assertNotIn("The end.", self.browser.source, "the frame shows the beginning")
        self.browser.leave()
        link = "//a[text()='View entire message']"
        self.assertEqual([self.browser.attribute(link, name) for name in ("target", "rel")], ["_blank", "noopener noreferrer"])
        address = self.browser.attribute(link, "href")
        self.browser.go(self.address(address) if address.startswith("/") else address)
        self.assertIn("The end.", self.browser.source)
        self.assertNothingRan("all of it")
        # Without scripts no timer runs.
        self.browser.go(self.address("/mail/"))
        self.settle()
        self.assertEqual(self.listener.asked, [])

    def test_requested_images_are_shown_and_nothing_runs(self):
        html = "<p>Harmless</p>" + RUNNING["a script"] + FETCHING["a picture"] + FETCHING["a frame"] + FETCHING["another page, at once"]
        subject = self.deliver("Pictures", html.replace("HERE", self.listener.address), "text/html")
        self.log_in("ada")
        self.open(subject)
        self.settle()
        self.assertEqual(self.listener.asked, [])
        self.browser.follow("button[value=once]")
        until(lambda: self.listener.asked, ANSWER_SECONDS, "the image is fetched")
        self.settle()
        self.assertEqual(set(self.listener.asked), {"/a.png"})
        self.assertNothingRan("loaded")
        self.try_frame("loaded")

    def test_header_fields_and_file_names_are_shown_as_text(self):
        for what, (header, body) in MESSAGES.items():
            kind = "" if "Content-Type" in header else "\r\nContent-Type: text/plain; charset=utf-8"
            message = f"{header}\r\nTo: barbara@{DOMAIN}\r\nMIME-Version: 1.0{kind}\r\n\r\n{body}\r\n"
            self.deliver_as_it_is(message.encode(), "barbara")
        self.deliver_as_it_is(
            f"From: a@elsewhere.test\r\nSubject: Files\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nText\r\n".encode()
            + f'--b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename="\\"><img src=x onerror=pwned=1>.html"\r\n\r\n{ATTEMPT}\r\n'.encode()
            + f"--b\r\nContent-Type: image/svg+xml; name=\"drawing.svg\"\r\nContent-Disposition: inline\r\n\r\n<svg xmlns='http://www.w3.org/2000/svg'><script>{MARK}</script></svg>\r\n--b--\r\n".encode(),
            "barbara",
        )
        self.log_in("barbara")
        self.settle()
        self.assertNothingRan("the list")
        links = self.browser.all(".row a")
        self.assertEqual(len(links), len(MESSAGES) + 1)
        numbers = range(1, len(links) + 1)
        addresses = [self.browser.attribute(f"(//a[@class='what'])[{number}]", "href") for number in numbers]
        keys = [self.browser.attribute(f"(//li//input[@name='key'])[{number}]", "value") for number in numbers]
        for address, key in zip(addresses, keys):
            for page in (address, f"/mail/compose?reply={key}"):
                self.check_page(page)

    def check_page(self, address):
        """Asserts that nothing runs on a page, in its frame, or in its downloads."""
        self.browser.go(self.address(address) if address.startswith("/") else address)
        self.settle()
        self.assertNothingRan(address)
        if self.browser.is_there("iframe.sheet-of-mail"):
            self.browser.enter("iframe.sheet-of-mail")
            self.assertNothingRan(address)
            self.browser.leave()
        for number in range(len(self.browser.all("ul.attachments a"))):
            self.browser.click(f"(//ul[@class='attachments']//a)[{number + 1}]")
            self.settle()
            self.assertIn("/mail/message/", self.browser.address, "an attachment is a download and not a page")
            self.assertNothingRan(address)
