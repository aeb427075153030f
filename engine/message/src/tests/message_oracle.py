"""Writes into message_cases.txt how Python's email package reads each message: python3 message_oracle.py < message_cases.txt > new.

It is kept beside the corpus to show how the lines `python:` were made.
"""

import re
import sys
import zlib
from email import message_from_bytes


def unescaped(text: str) -> bytes:
    return re.sub(
        rb"\\(x[0-9a-f]{2}|[rnt])",
        lambda found: bytes([int(found[1][1:], 16)]) if found[1][:1] == b"x" else {b"r": b"\r", b"n": b"\n", b"t": b"\t"}[found[1]],
        text.encode(),
    )


def describe(part, depth: int):
    said = [str(depth), part.get_content_type()]
    if charset := part.get_content_charset():
        said.append(f"charset={charset}")
    if name := part.get_filename():
        said.append(f"file={name.splitlines()[0]}")
    if disposition := part.get_content_disposition():
        said.append(disposition)
    if identifier := part.get("Content-ID"):
        said.append(f"id={identifier.strip().strip('<>')}")
    children = part.get_payload() if part.is_multipart() else []
    if not children:
        payload = part.get_payload(decode=True) or b""
        said.append(f"{len(payload)}:{zlib.crc32(payload):08x}")
    yield " ".join(said)
    for child in children:
        yield from describe(child, depth + 1)


def flush(name, lines):
    """A case is its lines, each with its end; a line that ends in a backslash has none."""
    if name is None:
        return
    end = b"\n" if name.endswith(" LF") else b"\r\n"
    message = b"".join(unescaped(line[:-1]) if line.endswith("\\") else unescaped(line) + end for line in lines)
    for line in describe(message_from_bytes(message), 0):
        print("python:", "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in line))


name, lines, ours = None, [], []
for line in [*sys.stdin.read().splitlines(), "=== "]:
    if line.startswith("=== "):
        flush(name, lines)
        print("\n".join(ours), end="\n" if ours else "")
        name, lines, ours = line[4:], [], []
        if name:
            print(line)
    elif line.startswith("ours:"):
        ours.append(line)
    elif not line.startswith("python:"):
        print(line)
        if name is not None:
            lines.append(line)
