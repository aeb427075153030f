"""A client of the webmail that keeps cookies and sends forms, without a browser."""

import re
import ssl
import urllib.parse
import urllib.request

from mail import DOMAIN, PASSWORD


class Forms:
    def __init__(self, address, certificate, user):
        """Logs in. `address`: the origin of the webmail."""
        context = ssl.create_default_context(cafile=certificate)
        # A machine in the test's own network has no name, so only its certificate is checked.
        context.check_hostname = address.startswith("https://localhost")
        self.address = address
        self.opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), urllib.request.HTTPCookieProcessor())
        page = self._post("/mail/login", name=f"{user}@{DOMAIN}", password=PASSWORD, next="/mail/settings")
        self.token = re.search(r'name="token" value="([^"]+)"', page)[1]

    def post(self, path, **fields):
        """Sends a form. Returns the text of the page that follows."""
        return self._post(path, token=self.token, **fields)

    def _post(self, path, **fields):
        form = urllib.parse.urlencode(fields).encode()
        with self.opener.open(f"{self.address}{path}", form, timeout=60) as answer:
            return answer.read().decode()

    def hold(self, seconds):
        """Sets the number of seconds for which sending can be undone."""
        saved = self.post("/mail/settings", do="save", hold=seconds)
        assert f'value="{seconds}" selected' in saved, saved
