"""The promise: SPF policies are evaluated as the authors of RFC 7208 intend.

pyspf includes their test suite. Our crate `spf` runs each of its tests unchanged, with the zones of the suite in place of
name servers.

It takes seconds. --quick runs the same tests.
"""

import gzip
import re
import subprocess
import sys

import barepost
from processes import ROOT, die_with_us

SUITE = ROOT / "target" / "tools" / "spf"
sys.path.insert(0, str(SUITE))

import yaml  # noqa: E402

TESTS = 203


class Silence(Exception):
    """Name servers don't answer."""


class Zones:
    """The DNS records of a scenario of the suite."""

    def __init__(self, data):
        self.data = {name.lower(): records for name, records in data.items()}

    def find(self, name, kind, aliases=8):
        """The records of a name, as the suite writes them.

        A name with `SPF` records and no `TXT` records also has them as `TXT`. After an entry `TIMEOUT`, the name server does
        not answer, unless a record was found before.
        """
        found, entries = [], self.data.get(name.lower(), [])
        has_text = any("TXT" in entry for entry in entries if entry != "TIMEOUT")
        for entry in entries:
            if entry == "TIMEOUT":
                if not found:
                    raise Silence
                continue
            ((given, value),) = entry.items()
            if given == "CNAME" and aliases:
                return self.find(value, kind, aliases - 1)
            if given == kind or (given, kind, has_text) == ("SPF", "TXT", False):
                if value == "TIMEOUT":
                    raise Silence
                if value != "NONE":
                    found.append(value)
        return found


def written(kind, value):
    if kind == "TXT":
        return "".join(value).encode().hex()
    return value[1] if kind == "MX" else value


def unescaped(name):
    """A name without escapes, as the suite's zones have it. A dot divides labels."""
    return re.sub(r"\\(\d{3}|.)", lambda found: chr(int(found[1])) if len(found[1]) == 3 else found[1], name)


class Suite(barepost.Test):
    def setUp(self):
        super().setUp()
        command = ["cargo", "run", "--quiet", "--offline", "-p", "spf", "--example", "check", "--target-dir", "target"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.checker = self.enterContext(subprocess.Popen(command, cwd=ROOT, preexec_fn=die_with_us, **pipes))

    def tell(self, *fields):
        self.checker.stdin.write(("\t".join(fields) + "\n").encode())
        self.checker.stdin.flush()

    def verdict(self, zones, test):
        sender = test.get("mailfrom", "")
        local_part, domain = sender.rsplit("@", 1) if "@" in sender else ("", sender or test["helo"])
        self.tell("check", test["host"], test["helo"], local_part or "postmaster", domain)
        while True:
            said, *fields = self.checker.stdout.readline().decode().rstrip("\n").split("\t")
            if said == "verdict":
                return fields[0]
            kind, name = fields
            try:
                self.tell("records", *(written(kind, value) for value in zones.find(unescaped(name), kind)))
            except Silence:
                self.tell("silence")

    def test_spf_every_test_of_the_suite_comes_out_as_it_says(self):
        tests = 0
        for scenario in yaml.safe_load_all(gzip.decompress((SUITE / "rfc7208-tests.yml.gz").read_bytes())):
            zones = Zones(scenario["zonedata"])
            for name, test in scenario["tests"].items():
                tests += 1
                expected = test["result"] if isinstance(test["result"], list) else [test["result"]]
                with self.subTest(scenario["description"], test=name):
                    self.assertIn(self.verdict(zones, test), expected, test.get("comment"))
        self.assertEqual(tests, TESTS)
        self.checker.stdin.close()
        self.assertEqual(self.checker.wait(60), 0)


if __name__ == "__main__":
    barepost.main()
