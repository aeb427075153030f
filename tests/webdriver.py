"""Chromium, driven by ChromeDriver over the WebDriver protocol, with the actions of a person.

- There are no fixed sleeps: a condition is tried again until it holds or its time is over.
- The browser has left a page when the page's `<main>` is stale (W3C WebDriver 12.2). Only then the next page is examined.
- A dialog that a page's script opens stays open, so the next command fails.
- Chromium trusts only the machine's own certificate, by its key.

Source: W3C WebDriver (https://www.w3.org/TR/webdriver2/); ChromeDriver's `goog:chromeOptions` and `goog/cdp/execute`.
"""

import base64
import collections
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

from processes import Process, die_with_us, program, until

START_SECONDS = 60
# The time limit of one command. The longest needs a password hash and a handshake, under emulation on a busy host.
ANSWER_SECONDS = 60
# The JSON key of an element's reference (W3C WebDriver 12.1).
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# The codes of keys with names (W3C WebDriver 17.4.2).
NAMED_KEYS = {"Control": "\ue009", "Shift": "\ue008", "Enter": "\ue007", "Escape": "\ue00c", "Space": " "}
# Errors for an element that is gone, or cannot be reached yet.
PASSING = ("no such element", "stale element reference", "element not interactable", "element click intercepted")

Screen = collections.namedtuple("Screen", "name width height is_phone")
DESKTOP = Screen("desktop", 1280, 900, False)
PHONE = Screen("phone", 390, 844, True)


class Refused(AssertionError):
    """The driver answered with an error. `is_passing`: whether a second try may succeed."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        # If the page changes while an element is examined, ChromeDriver passes on the error of DevTools.
        self.is_passing = kind in PASSING or kind == "unknown error" and "unhandled inspector error" in message


def key_digest(certificate):
    """The SHA-256 of the public key in a PEM file, in base64, as Chromium requires it."""
    how = {"capture_output": True, "check": True, "timeout": 30, "preexec_fn": die_with_us}
    key = subprocess.run(["openssl", "x509", "-in", str(certificate), "-noout", "-pubkey"], **how).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key, **how).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


class Browser:
    """One Chromium with one window, on an empty profile in `folder`."""

    def __init__(self, folder, certificate, screen=DESKTOP, scripts=True, is_eager=False):
        """`is_eager`: a page counts as loaded once it is parsed, even if its subresources do not load."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.downloads = folder, folder / "downloads"
        self.downloads.mkdir()
        self._session = None
        self._driver = Process([program("chromedriver"), "--port=0"], folder / "chromedriver.console")
        try:
            port = self._driver.wait_for_line(r"started successfully on port (\d+)", START_SECONDS)[1]
            self._address = f"http://127.0.0.1:{port}/session"
            self._begin(certificate, scripts, is_eager)
            self.resize(screen)
            self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        except BaseException:
            self.close()
            raise

    def _begin(self, certificate, scripts, is_eager):
        arguments = [
            # With a pipe instead of a port, Chromium ends when its driver ends.
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=en", "--hide-scrollbars",
            f"--user-data-dir={self.folder / 'profile'}",
            f"--ignore-certificate-errors-spki-list={key_digest(certificate)}",
        ]
        preferences = {"credentials_enable_service": False, "profile.password_manager_leak_detection": False}
        if not scripts:
            preferences["profile.managed_default_content_settings.javascript"] = 2
        options = {"binary": program("chromium"), "args": arguments, "prefs": preferences}
        wanted = {"browserName": "chrome", "unhandledPromptBehavior": "ignore", "goog:chromeOptions": options}
        wanted["pageLoadStrategy"] = "eager" if is_eager else "normal"
        answer = self._ask("POST", self._address, {"capabilities": {"alwaysMatch": wanted}})
        self._session = answer["sessionId"]

    def close(self):
        """Ends Chromium and all processes that it started."""
        if self._session:
            with contextlib.suppress(OSError, AssertionError):
                self._ask("DELETE", f"{self._address}/{self._session}")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._driver.pid, signal.SIGKILL)
        self._driver.kill()

    def _ask(self, method, address, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=2 * ANSWER_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise Refused(value["error"], value["message"]) from None

    def command(self, method, path, **body):
        """Runs a command of the session. Returns its value. Errors: `Refused`."""
        return self._ask(method, f"{self._address}/{self._session}/{path}", body)

    def devtools(self, name, **parameters):
        """Runs a command of the DevTools protocol."""
        return self.command("POST", "goog/cdp/execute", cmd=name, params=parameters)

    def resize(self, screen):
        """Gives the page this size. A phone has no scroll bars, and respects `<meta name=viewport>`."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=screen.width, height=screen.height, deviceScaleFactor=1, mobile=screen.is_phone,
        )

    def darken(self, is_dark):
        """Sets whether the user prefers dark colours. Motion is off, so that all colours change at once."""
        wishes = {"prefers-color-scheme": "dark" if is_dark else "light", "prefers-reduced-motion": "reduce"}
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in wishes.items()])

    # Navigation state.

    def go(self, address):
        self.command("POST", "url", url=address)

    def back(self):
        self.command("POST", "back")

    @property
    def address(self):
        return self.command("GET", "url")

    @property
    def title(self):
        return self.command("GET", "title")

    @property
    def source(self):
        return self.command("GET", "source")

    def cookies(self):
        """The cookies that this page's server would receive."""
        return self.command("GET", "cookie")

    def forget(self):
        """Drops all cookies."""
        self.devtools("Network.clearBrowserCookies")

    def run(self, script, *arguments):
        """Runs a script in the page. Returns the value of its `return`."""
        return self.command("POST", "execute/sync", script=script, args=list(arguments))

    def run_late(self, script, *arguments):
        """Runs a script in the page. Returns the value that the script passes to its last argument, a function."""
        return self.command("POST", "execute/async", script=script, args=list(arguments))

    def picture(self):
        """The window as a PNG."""
        return base64.b64decode(self.command("GET", "screenshot"))

    def enter(self, css):
        """Enters a frame."""
        self.command("POST", "frame", id={ELEMENT: self.one(css)})

    def leave(self):
        """Leaves the frame."""
        self.command("POST", "frame", id=None)

    def windows(self):
        return self.command("GET", "window/handles")

    def window(self):
        return self.command("GET", "window")

    def show(self, window):
        """Turns to another window."""
        self.command("POST", "window", handle=window)

    def close_window(self):
        self.command("DELETE", "window")

    def printed(self):
        """The page as a PDF."""
        return base64.b64decode(self.devtools("Page.printToPDF")["data"])

    # Elements.

    def all(self, selector):
        """The elements of a CSS selector, or of an XPath, which begins with `//` or `(//`."""
        how = "xpath" if selector.startswith(("//", "(//")) else "css selector"
        found = self.command("POST", "elements", using=how, value=selector)
        return [element[ELEMENT] for element in found]

    def one(self, selector):
        """Waits for the first element."""
        return until(lambda: self.all(selector), ANSWER_SECONDS, f"{selector} on {self.address}")[0]

    def _with(self, selector, do):
        """Calls `do` with an element, and again if the element changes meanwhile. Returns the result."""
        def attempt():
            try:
                return (do(self.one(selector)),)
            except Refused as refused:
                if not refused.is_passing:
                    raise
                return None

        return until(attempt, ANSWER_SECONDS, selector)[0]

    def text(self, selector="body"):
        """The visible text of an element."""
        return self._with(selector, lambda element: self.command("GET", f"element/{element}/text"))

    def attribute(self, selector, name):
        return self._with(selector, lambda element: self.command("GET", f"element/{element}/attribute/{name}"))

    def value(self, selector):
        """The value of a field."""
        return self._with(selector, lambda element: self.command("GET", f"element/{element}/property/value"))

    def is_there(self, selector):
        return bool(self.all(selector))

    def wait_until_gone(self, selector):
        until(lambda: not self.is_there(selector), ANSWER_SECONDS, f"{selector} goes away")

    # Input.

    def click(self, selector):
        self._with(selector, lambda element: self.command("POST", f"element/{element}/click"))

    def type(self, selector, text):
        """Types text into a field, or the path of a file into a file field."""
        self._with(selector, lambda element: self.command("POST", f"element/{element}/value", text=text))

    def write(self, selector, text):
        """Empties a field, and types into it."""
        self._with(selector, lambda element: self.command("POST", f"element/{element}/clear"))
        self.type(selector, text)

    def press(self, *keys):
        """Presses keys in turn; some have names. Keys joined by `+` are held together."""
        self.command("POST", "actions", actions=key_actions(keys))

    def wheel(self, x, y, pixels):
        """Turns the wheel over a point of the window."""
        self.command("POST", "actions", actions=wheel_actions(x, y, pixels))

    def follow(self, selector):
        """Clicks on an element that leads to another page, and waits until this page is left."""
        self.leave_by(lambda: self.click(selector), selector)

    def follow_keys(self, *keys):
        """Presses keys that lead to another page, and waits until this page is left."""
        self.leave_by(lambda: self.press(*keys), keys)

    def leave_by(self, do, what):
        """Calls `do`, which leads to another page. Waits until this page is left, by a load or by a change in place."""
        here = self.one("main")
        do()

        def is_left():
            try:
                self.command("GET", f"element/{here}/name")
            except Refused as refused:
                if not refused.is_passing:
                    raise
                return True
            return False

        until(is_left, ANSWER_SECONDS, f"{what} leads away")

    def downloaded(self, name):
        """Waits for the downloaded file `name`. Returns its bytes."""
        path = self.downloads / name

        def is_whole():
            # Firefox creates an empty file, and moves the one with the bytes over it.
            return path.exists() and path.stat().st_size > 0 and not any(self.downloads.glob("*.part"))

        until(is_whole, ANSWER_SECONDS, f"{name} is downloaded")
        return path.read_bytes()


def key_actions(keys):
    """The actions that press keys in turn (W3C WebDriver 17.4.2)."""
    actions = []
    for key in keys:
        held = [NAMED_KEYS.get(one, one) for one in (key.split("+") if len(key) > 1 else [key])]
        actions += [{"type": "keyDown", "value": one} for one in held]
        actions += [{"type": "keyUp", "value": one} for one in reversed(held)]
    return [{"type": "key", "id": "keyboard", "actions": actions}]


def wheel_actions(x, y, pixels):
    """The action that turns the wheel over a point of the window (W3C WebDriver 17.4.4)."""
    turn = {"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": pixels, "origin": "viewport"}
    return [{"type": "wheel", "id": "wheel", "actions": [turn]}]


def named(text):
    """A text as an XPath literal."""
    assert '"' not in text
    return f'"{re.sub(" +", " ", text)}"'
