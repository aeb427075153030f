"""Firefox, driven over its own Marionette protocol, without another program.

The class has the methods of `webdriver.Browser` that the test of both browsers uses. The preferences that Firefox
recommends for tests (`remote.prefs.recommended`) stay off, because they prevent connections and look-ups in advance.

Source: https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html.
"""

import base64
import contextlib
import json
import os
import signal
import socket

from processes import Process, program, until
from webdriver import ANSWER_SECONDS, ELEMENT, START_SECONDS, key_actions, wheel_actions

# With these preferences Firefox contacts no host by itself. For pages it has the default preferences of users.
PREFERENCES = {
    "marionette.port": 0,
    "remote.prefs.recommended": False,
    "app.update.auto": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}


class Firefox:
    """One Firefox with one window, on an empty profile in `folder`. It accepts any certificate."""

    def __init__(self, folder):
        folder.mkdir(parents=True)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items()]
        (folder / "user.js").write_text("".join(lines))
        command = [program("firefox-esr"), "--headless", "--marionette", "--no-remote", "--profile", folder]
        self._process = Process(command, folder / "firefox.console", os.environ | {"HOME": str(folder)})
        self._connection, self._number, self._rest = None, 0, b""
        try:
            said = folder / "MarionetteActivePort"
            port = until(lambda: said.exists() and said.read_text(), START_SECONDS, "Marionette")
            self._connection = socket.create_connection(("127.0.0.1", int(port)), 2 * ANSWER_SECONDS)
            self._answer()
            self.command("NewSession", acceptInsecureCerts=True)
        except BaseException:
            self.close()
            raise

    def close(self):
        """Ends Firefox and all processes that it started."""
        if self._connection:
            self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def _answer(self):
        """The next message: its length in digits, a colon, and JSON."""
        while b":" not in self._rest:
            self._read()
        length, _, self._rest = self._rest.partition(b":")
        while len(self._rest) < int(length):
            self._read()
        message, self._rest = self._rest[:int(length)], self._rest[int(length):]
        return json.loads(message)

    def _read(self):
        piece = self._connection.recv(1 << 16)
        if not piece:
            raise AssertionError(f"Firefox has ended; {self._process.tail()}")
        self._rest += piece

    def command(self, name, **parameters):
        """Runs a WebDriver command. Returns its value."""
        self._number += 1
        message = json.dumps([0, self._number, f"WebDriver:{name}", parameters]).encode()
        self._connection.sendall(b"%d:%s" % (len(message), message))
        _, number, error, value = self._answer()
        assert number == self._number, "answers come in order"
        if error:
            raise AssertionError(f"{name}: {error['error']}: {error['message']}")
        return value.get("value") if isinstance(value, dict) else value

    def go(self, address):
        self.command("Navigate", url=address)

    @property
    def address(self):
        return self.command("GetCurrentURL")

    @property
    def source(self):
        return self.command("GetPageSource")

    def windows(self):
        return self.command("GetWindowHandles")

    def window(self):
        return self.command("GetWindowHandle")

    def show(self, window):
        """Turns to another window."""
        self.command("SwitchToWindow", handle=window)

    def close_window(self):
        self.command("CloseWindow")

    def printed(self):
        """The page as a PDF."""
        return base64.b64decode(self.command("Print"))

    def run(self, script, *arguments):
        """Runs a script in the page. Returns the value of its `return`."""
        return self.command("ExecuteScript", script=script, args=list(arguments))

    def _one(self, css):
        return self.command("FindElement", using="css selector", value=css)[ELEMENT]

    def click(self, css):
        """Clicks on an element, as a person does."""
        self.command("ElementClick", id=self._one(css))

    def press(self, *keys):
        """Presses keys in turn; some have names."""
        self.command("PerformActions", actions=key_actions(keys))

    def wheel(self, x, y, pixels):
        """Turns the wheel over a point of the window."""
        self.command("PerformActions", actions=wheel_actions(x, y, pixels))

    def enter(self, css):
        """Enters a frame."""
        self.command("SwitchToFrame", element=self._one(css))

    def leave(self):
        """Leaves the frame."""
        self.command("SwitchToFrame", id=None)
