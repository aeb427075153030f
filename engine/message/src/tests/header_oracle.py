"""Writes into header_cases.txt what Python's email package reads in each case: python3 header_oracle.py < header_cases.txt > new.

It is kept beside the corpus to show how the lines `python:` were made.
"""

import email.policy
import email.utils
import re
import sys
from email import message_from_bytes


def unescaped(text: str) -> bytes:
    raw = text.encode()
    return re.sub(
        rb"\\(x[0-9a-f]{2}|[rnt])",
        lambda found: bytes([int(found[1][1:], 16)]) if found[1][:1] == b"x" else {b"r": b"\r", b"n": b"\n", b"t": b"\t"}[found[1]],
        raw,
    )


def escaped(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text)


def field(name: str, raw: bytes):
    message = message_from_bytes(name.encode() + b": " + raw + b"\r\n\r\n", policy=email.policy.default)
    return message[name]


def mailbox(address) -> str:
    return f"[{address.display_name}|{address.addr_spec if address.addr_spec != '<>' else ''}]"


def addresses(raw: bytes) -> str:
    found = []
    for group in field("To", raw).groups:
        members = "".join(map(mailbox, group.addresses))
        found.append(members if group.display_name is None else f"{{{group.display_name}: {members}}}" if members else f"{{{group.display_name}:}}")
    return " ".join(found)


def date(raw: bytes) -> str:
    parsed = email.utils.parsedate_tz(raw.decode("ascii", "replace"))
    return "none" if parsed is None else f"{email.utils.mktime_tz(parsed)} {(parsed[9] or 0) // 60}"


def parameter(name: str, raw: bytes) -> str:
    header = "Content-Disposition" if name == "filename" else "Content-Type"
    return field(header, raw).params.get(name, "none")


def answer(line: str) -> str:
    kind, _, rest = line.partition(" ")
    try:
        if kind == "text":
            return str(field("Subject", unescaped(rest)))
        if kind == "addresses":
            return addresses(unescaped(rest))
        if kind == "date":
            return date(unescaped(rest))
        name, _, rest = rest.partition(" ")
        return parameter(name, unescaped(rest))
    except Exception as error:  # An exception of the package is an answer too.
        return f"{type(error).__name__}"


for line in sys.stdin.read().splitlines():
    if line.startswith("python:"):
        continue
    print(line)
    if line and not line.startswith(("#", "ours:")):
        print(f"python: {escaped(answer(line))}".rstrip())
