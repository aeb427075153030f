"""Realistic messages, for screenshots of the webmail and for the accessibility test."""

from mail import DOMAIN

# The contents of each file.
LINE = "QSBsaW5lIG9mIGEgZmlsZSB0aGF0IGNvbWVzIGFsb25nLCBhbmQgc2F5cyBub3RoaW5nLg==\r\n"
# Sender, subject, text and attached files, the oldest first.
MESSAGES = (
    ("Analytical Society <office@society.test>", "Minutes of the October meeting", "Dear members,\n\nthe minutes are below. Please send corrections by Friday.", ()),
    ("Mary Somerville <mary@somerville.test>", "On the connexion of the sciences", "The third edition goes to press on Monday, and I owe two of its chapters to you.", ()),
    ("Night train <bookings@rails.test>", "Your tickets to Torino", "Coach 14, berths 31 and 33. The train leaves at 20:12 from platform 5.", ("tickets.pdf",)),
    ("Luigi Menabrea <luigi@torino.test>", "Una domanda sulle note", "Gentile Ada, ho letto le Sue note con ammirazione. Posso tradurle in italiano?", ()),
    ("Софья Ковалевская <sofia@stockholm.test>", "О вращении твёрдого тела", "Дорогая Ада, посылаю Вам обещанный чертёж.", ("Чертёж 1.pdf",)),
    ("Augustus De Morgan <augustus@demorgan.test>", "Exercises, second part", "The limits are as you say; but look again at the fourth, where the series does not converge.", ()),
    ("Blåbærtur AS <faktura@blabaertur.test>", "Faktura 2026-1182", "Hei Ada, vedlagt finner du faktura for november. Forfall er 6. desember.", ("faktura.pdf",)),
    (
        "Charles Babbage <charles@engine.test>", "The Engine, and what it could weave",
        "Dear Ada,\n\nthe mill is turning again: it took us all of last week to free the carriages, but since this morning it adds without a single fault.\n\n"
        "You wrote:\n\n> The Analytical Engine weaves algebraical patterns just as\n> the Jacquard loom weaves flowers and leaves.\n\n"
        "I have taken the liberty of reading that aloud at the Society, and nobody laughed. The drawings of the store are attached; look at the third sheet, "
        "where the columns are numbered from nought, as you proposed.\n\nCould you come on Thursday? https://engine.test/visit says how.\n\nEver yours,\nCharles",
        ("Store, sheet 3.pdf", "Columns.csv"),
    ),
    ("Grace Hopper <grace@compiler.test>", "The compiler is done", "It compiles itself now, which took us until four in the morning. The listing follows.", ()),
)


def message(sender, subject, text, files, number):
    """A message with its files, as it arrives over SMTP."""
    head = (
        f"From: {sender}\r\nTo: Ada Lovelace <ada@{DOMAIN}>\r\nSubject: {subject}\r\n"
        f"Date: Sun, 22 Nov 2026 0{number}:1{number}:00 +0000\r\nMessage-ID: <{number}@messages.test>\r\nMIME-Version: 1.0\r\n"
    )
    body = "Content-Type: text/plain; charset=utf-8\r\n\r\n" + text.replace("\n", "\r\n") + "\r\n"
    if not files:
        return (head + body).encode()
    parts = "".join(
        f'--b\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename="{name}"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
        + LINE * (40 + 3 * number) for name in files
    )
    return f"{head}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n{body}{parts}--b--\r\n".encode()


def deliver(machine):
    """Delivers all messages to Ada."""
    for number, (sender, subject, text, files) in enumerate(MESSAGES):
        reply = machine.deliver("sender@elsewhere.test", [f"ada@{DOMAIN}"], message(sender, subject, text, files, number))
        assert reply.code == 250, reply
