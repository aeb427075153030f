"""The results of dkimpy for signatures, with the keys that `./barepost dns` prints."""

import ctypes
import re
import subprocess
import sys

import barepost
from processes import ROOT, die_with_us

TOOLS = ROOT / "target" / "tools" / "dkim"
sys.path.insert(0, str(TOOLS))
# PyNaCl loads the library by its name. It is found, because it is already loaded.
ctypes.CDLL(str(TOOLS / "libsodium.so.23"), ctypes.RTLD_GLOBAL)

import dkim  # noqa: E402


def published(data):
    """The DKIM keys that `./barepost dns` prints: {name: text}. The strings of a record are joined."""
    command = [barepost.COMMAND, "dns", "--data", data]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60, preexec_fn=die_with_us).stdout.splitlines()
    texts = [line.split(b" IN TXT ") for line in lines if b"._domainkey." in line and b" IN TXT " in line]
    return {name: re.findall(rb'"([^"]*)"', text) for name, text in texts}


def verdicts(message, keys):
    """The result of each signature of a message, from the top: (algorithm, whether it passes)."""
    read = dkim.DKIM(message)
    signatures = [value for name, value in read.headers if name.lower() == b"dkim-signature"]
    return [(re.search(rb" a=([a-z0-9-]*);", value)[1].decode(), _passes(read, index, keys)) for index, value in enumerate(signatures)]


def chain_passes(message, keys):
    """Whether the ARC seals of a message are valid."""
    found, _, _ = dkim.ARC(message).verify(dnsfunc=lambda name, timeout=5: b"".join(keys.get(name, ())))
    return found == dkim.CV_Pass


def _passes(read, index, keys):
    try:
        return read.verify(index, dnsfunc=lambda name, timeout=5: b"".join(keys[name]))
    except dkim.ValidationError:
        # dkimpy raises this for a changed body.
        return False
