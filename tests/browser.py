"""The promise: Chromium shows a site of many files completely, and the second time from its cache.

The page loads a style sheet, a script and thirty pictures. The script fetches a large file whole and in part, and
files that exist and that do not exist. It writes the results into the page, which Chromium prints at the end.

It takes half a minute under TCG.
"""

import hashlib
import random
import re
import struct
import subprocess
import zlib

import barepost
from barepost import options
from processes import die_with_us, program

HTTP = 80
LARGE_BYTES = 3 << 20
PICTURES = 30
STYLE = "p { color: rgb(1, 2, 3) }"
PAGE = f"""\
<!doctype html>
<html><head><meta charset="utf-8"><title>A page</title>
<link rel="stylesheet" href="/style.css"></head>
<body><p id="found">nothing</p>
{"".join(f'<img src="/pictures/{number}.png" alt="">' for number in range(PICTURES))}
<script src="/script.js"></script></body></html>
"""
SCRIPT = f"""\
const hexadecimal = bytes => [...new Uint8Array(bytes)].map(byte => byte.toString(16).padStart(2, "0")).join("");
addEventListener("load", async () => {{
  const whole = await (await fetch("/large.bin")).arrayBuffer();
  const part = await fetch("/large.bin", {{ headers: {{ Range: "bytes=1000-70999" }}, cache: "no-store" }});
  const cut = new Uint8Array(whole).slice(1000, 71000), partial = new Uint8Array(await part.arrayBuffer());
  const missing = await fetch("/none");
  const again = await (await fetch("/style.css", {{ cache: "no-cache" }})).text();
  const pictures = [...document.images].filter(image => image.complete && image.naturalWidth === 7).length;
  const sums = crypto.subtle ? hexadecimal(await crypto.subtle.digest("SHA-256", whole)) : "no digest";
  document.getElementById("found").textContent = [
    whole.byteLength, sums, part.status, partial.length === cut.length && partial.every((byte, at) => byte === cut[at]),
    missing.status, again.length, pictures, getComputedStyle(document.querySelector("p")).color,
  ].join(" | ");
}});
"""


def picture(number):
    """A PNG of 7 by 7 points in one colour."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = (b"\0" + bytes((number, 100, 200)) * 7) * 7
    header = struct.pack(">IIBBBBB", 7, 7, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Browser(barepost.Test):
    configuration = barepost.CONFIGURATION + barepost.ACCESS + '[web]\nsite = "pages"\naccess_log = true\n'

    def setUp(self):
        super().setUp()
        data = self.data()
        (data / "pages/pictures").mkdir(parents=True)
        self.large = random.Random(options.seed).randbytes(LARGE_BYTES)
        for name, content in {
            "index.html": PAGE.encode(), "style.css": STYLE.encode(), "script.js": SCRIPT.encode(), "large.bin": self.large,
            **{f"pictures/{number}.png": picture(number) for number in range(PICTURES)},
        }.items():
            (data / "pages" / name).write_bytes(content)
        self.machine = self.boot(data)

    def browse(self):
        """The results of the page's script."""
        done = subprocess.run(
            [program("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={self.folder / 'browser'}", "--timeout=60000", "--virtual-time-budget=30000", "--dump-dom",
             f"http://localhost:{self.machine.ports + HTTP}/"],
            capture_output=True, text=True, timeout=180, preexec_fn=die_with_us,
        )
        found = re.search(r'<p id="found">(.*?)</p>', done.stdout)
        self.assertIsNotNone(found, done.stdout + done.stderr[-1000:])
        return found[1].split(" | ")

    def requests(self):
        """Path and status of each request so far, from the access log."""
        return re.findall(r'"GET (\S+)" (\d+)', "\n".join(self.machine.process.lines()))

    def test_chromium_loads_a_page_and_caches_it(self):
        expected = [
            str(LARGE_BYTES), hashlib.sha256(self.large).hexdigest(), "206", "true", "404", str(len(STYLE)), str(PICTURES),
            "rgb(1, 2, 3)",
        ]
        self.assertEqual(self.browse(), expected)
        first = self.requests()
        for path in ("/", "/style.css", "/script.js", *(f"/pictures/{number}.png" for number in range(PICTURES))):
            self.assertIn((path, "200"), first)
        self.assertIn(("/style.css", "304"), first, "the style sheet was asked for again, with what it was known by")
        self.assertEqual(self.browse(), expected)
        second = self.requests()[len(first):]
        barepost.say(f"{len(first)} requests, then {len(second)}")
        self.assertIn(("/style.css", "304"), second)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())


if __name__ == "__main__":
    barepost.main()
