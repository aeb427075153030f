"""The promise: common checkers of TLS and HTTP/2 servers find the intended features and no weakness.

h2spec finds only deviations that RFC 9113 allows. At each service, with implicit TLS or STARTTLS, sslyze and testssl.sh
find the versions, suites and groups that `conform/expected.json` names. OpenSSL 3.5 agrees on the hybrid group without
options.

It takes a minute or two under TCG. testssl.sh takes five more, and is not part of --quick.
"""

import json
import pathlib
import subprocess
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor

import barepost
from barepost import options
from processes import ROOT, die_with_us, program

HTTPS = 443
HERE = pathlib.Path(__file__).parent / "conform"

# The longest time of an answer and of a checker's run, in seconds. Even slow machines are faster.
ANSWER_SECONDS = 20
SCAN_SECONDS = 900

H2SPEC_CHECKS = 145
# Tests of RFC 7540 section 5.3.1. RFC 9113 section 5.3.2 removed priorities, so the server does not check dependencies.
DROPPED = {
    ("http2/5.3.1", "Sends HEADERS frame that depend on itself"),
    ("http2/5.3.1", "Sends PRIORITY frame that depend on itself"),
}

# The options of testssl.sh for each service.
SERVICES = {
    "smtp": (25, ["--starttls", "smtp"]),
    "pop3": (110, ["--starttls", "pop3"]),
    "https": (443, []),
    "submissions": (465, []),
    "submission": (587, ["--starttls", "smtp"]),
    "pop3s": (995, []),
}
# Findings about the checker itself and about the time of its run.
OF_THE_SCAN = {"scanTime", "service", "engine_problem", "old_fart"}


def run(*command, seconds=SCAN_SECONDS):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=seconds, preexec_fn=die_with_us)


class Conform(barepost.Test):
    def setUp(self):
        super().setUp()
        data = self.data(configuration=barepost.CONFIGURATION + barepost.ACCESS + '[web]\nsite = "pages"\n')
        (data / "pages").mkdir()
        (data / "pages" / "index.html").write_bytes(b"Index")
        self.machine = self.boot(data)
        self.expected = json.loads((HERE / "expected.json").read_text())

    def assertExpected(self, found):
        """Asserts that the findings are those in `conform/expected.json`."""
        path = self.folder / "found.json"
        path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
        self.assertEqual(found, {checker: self.expected[checker] for checker in found}, f"all that was found stands in {path}")

    def test_h2spec_finds_nothing_but_what_rfc_9113_has_dropped(self):
        report = self.folder / "h2spec.xml"
        arguments = ("--host", "127.0.0.1", "--port", self.machine.ports + HTTPS, "--tls", "--insecure", "--timeout", ANSWER_SECONDS)
        run(program("h2spec"), *arguments, "--junit-report", report)
        checks = list(xml.etree.ElementTree.parse(report).iter("testcase"))
        broken = {(check.get("package"), check.get("classname")) for check in checks if check.find("failure") is not None or check.find("error") is not None}
        skipped = [check.get("classname") for check in checks if check.find("skipped") is not None]
        self.assertEqual((broken, skipped, len(checks)), (DROPPED, [], H2SPEC_CHECKS))

    def test_sslyze_and_openssl_find_what_is_meant_to_be_there(self):
        done = run(ROOT / "target/tools/conform/bin/python", HERE / "scan.py", self.machine.ports)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertExpected(json.loads(done.stdout))

    def test_testssl_finds_what_is_meant_to_be_there_and_no_weakness(self):
        if options.quick:
            self.skipTest("testssl.sh takes its time")
        with ThreadPoolExecutor() as workers:
            found = dict(zip(SERVICES, workers.map(self.scan, SERVICES)))
        for name, findings in found.items():
            weak = {what: finding for what, finding in findings.items() if not finding.startswith(("OK: ", "INFO: "))}
            self.assertEqual(weak, {}, name)
        self.assertExpected({"testssl": found})

    def scan(self, name):
        """The findings of testssl.sh at one service: versions, suites, groups and known weaknesses."""
        port, begun = SERVICES[name]
        report = self.folder / f"testssl-{name}.json"
        quiet = ("--quiet", "--color", "0", "--warnings", "off", "--nodns", "min")
        patient = ("--connect-timeout", ANSWER_SECONDS, "--openssl-timeout", ANSWER_SECONDS)
        checks = ("--protocols", "--fs", "--vulnerable")
        run(program("testssl"), *quiet, *patient, "--jsonfile", report, *checks, *begun, f"127.0.0.1:{self.machine.ports + port}")
        findings = json.loads(report.read_text())
        return {one["id"]: f"{one['severity']}: {one['finding']}" for one in findings if one["id"] not in OF_THE_SCAN}


if __name__ == "__main__":
    barepost.main()
