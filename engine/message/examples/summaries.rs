//! Makes summaries of messages repeatedly, for a profiler.
//!
//! Build it with `cargo build --profile image -p message --example summaries`, and run the result
//! in `valgrind --tool=callgrind`. Its arguments are the name of a usual message, or the name of a
//! hostile message and its size in bytes. The counted instructions are for all rounds.

use std::hint::black_box;

use message::{SUMMARY_BYTES, Summary, summarize};

const ROUNDS: usize = 100;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let size = arguments.next().and_then(|size| size.parse().ok()).unwrap_or(31 * 1_024);
    let Some(message) = usual(&name).or_else(|| hostile(&name, size)) else {
        println!(
            "one of {:?}, or one of {:?}",
            USUAL.map(|(name, _)| name),
            HOSTILE.map(|(name, _, _)| name)
        );
        return;
    };
    let mut out = [0; SUMMARY_BYTES];
    let mut length = 0;
    for _ in 0..ROUNDS {
        (length, _) = black_box(summarize(black_box(&message), black_box(&mut out)));
    }
    println!("{name}: {} octets: {:?}", message.len(), out.get(..length).and_then(Summary::read));
}

fn usual(name: &str) -> Option<Vec<u8>> {
    let (_, message) = USUAL.into_iter().find(|(known, _)| *known == name)?;
    Some(message.replace('\n', "\r\n").into_bytes())
}

/// A hostile message of this size: a beginning, and then repetitions.
fn hostile(name: &str, size: usize) -> Option<Vec<u8>> {
    let (_, beginning, repeated) = HOSTILE.into_iter().find(|(known, _, _)| *known == name)?;
    Some(beginning.bytes().chain(repeated.bytes().cycle()).take(size).collect())
}

const USUAL: [(&str, &str); 3] =
    [("plain", PLAIN), ("encoded", ENCODED), ("alternative", ALTERNATIVE)];

const HOSTILE: [(&str, &str, &str); 14] = [
    ("empty-lists", "", "To:,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\r\n"),
    ("commas", "To:", ","),
    ("comments", "", "From: (((((((((((((((((((((((((((((((((((((((((((((((((((((\r\n"),
    ("addresses", "To: \u{200b}", " a(b)@c,"),
    ("hidden", "", "To: \u{200b}(x)\r\n"),
    ("words", "Subject: ", "=?utf-8?q?=C3=BC?= "),
    ("broken-words", "", "Subject: =?utf-8?q?\r\n =?utf-8?b?\r\n"),
    ("dates", "", "Date: 1 2 3 Mar : 4 5 6 +9999 7 8 9\r\n"),
    ("identifiers", "", "References: < < < < < < < < < < < <\r\n"),
    ("short-fields", "", "a:\n"),
    ("folds", "Subject: x\r\n", " \r\n"),
    ("invisible", "Content-Type: text/html\r\n\r\n", "<p>&zwnj;&shy;"),
    ("parts", "Content-Type: multipart/mixed; boundary=b\r\n\r\n", "--b\r\n\r\n"),
    (
        "nested",
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n",
        "--b\r\nContent-Type: multipart/mixed; boundary=bb\r\n\r\n--x\r\n",
    ),
];

const PLAIN: &str = "\
Received: from mx.example.net (mx.example.net [192.0.2.7])
\tby mail.barepost.test with ESMTPS id 00000000000004d2
\tfor <ada@barepost.test>;
\tSat, 21 Nov 2026 09:55:08 +0000
Received: from out.example.net (out.example.net [198.51.100.4])
\t(using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits)
\t key-exchange X25519 server-signature ECDSA (P-256))
\tby mx.example.net (Postfix) with ESMTPS id 4F2B73A01C
\tfor <ada@barepost.test>; Sat, 21 Nov 2026 10:55:07 +0100 (CET)
Received: from [10.1.2.3] (unknown [203.0.113.9])
\tby out.example.net (Postfix) with ESMTPSA id 91AB377F2D
\tfor <ada@barepost.test>; Sat, 21 Nov 2026 10:55:06 +0100 (CET)
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.net; s=2026;
\tt=1795254906; h=from:from:reply-to:subject:subject:date:date:
\t message-id:message-id:to:to:cc:mime-version:mime-version:
\t content-type:content-type:in-reply-to:in-reply-to:references:references;
\tbh=frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY=;
\tb=SokQgqmk0oRvh7IYu4P1JXfcaFIwvGSd7I3bJvOP4ICjVjPuvxcSBlc9JEEQmEfVfj0qkP
\t 0pcW9TQ3jU0w7fmPCYtqWzjVQ8b6Kse0PhqP3MBdAPDAvBJz7TvpDSDLJyRs5VDCQ5uLqa
\t rJ3Nq7n9NBdR5Yq3Wc0g5s2iW0NcBqNvYf5z0bq0w=
Message-ID: <5d2a0e5c-7d0b-4b6a-9f3c-2f6b7c1d8e9f@example.net>
Date: Sat, 21 Nov 2026 10:55:06 +0100
MIME-Version: 1.0
User-Agent: Mozilla Thunderbird
Subject: Re: The analytical engine weaves algebraical patterns
Content-Language: en-GB
To: Ada Lovelace <ada@barepost.test>, Mary Somerville <mary@barepost.test>
References: <a1b2c3d4@barepost.test> <e5f60718@example.net>
From: Charles Babbage <charles.babbage@example.net>
In-Reply-To: <e5f60718@example.net>
Content-Type: text/plain; charset=UTF-8; format=flowed
Content-Transfer-Encoding: 7bit

Dear Ada,

the engine is all but finished. The mill and the store stand in the
drawing room, and the cards of Monsieur Jacquard are on their way from
Lyon. I should be glad of your notes on the method before the meeting.

On 20/11/2026 09:12, Ada Lovelace wrote:
> How does the engine come along?

Yours,
Charles
";

const ENCODED: &str = "\
Received: from mx.example.net (mx.example.net [192.0.2.7])
\tby mail.barepost.test with ESMTPS id 00000000000004d2;
\tSat, 21 Nov 2026 09:55:08 +0000
Message-ID: <5d2a0e5c@example.net>
Date: Sat, 21 Nov 2026 10:55:06 +0100
MIME-Version: 1.0
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe_aus_K=C3=B6ln?= =?utf-8?b?IQ==?=
To: =?utf-8?q?J=C3=B6rg_M=C3=BCller?= <joerg@barepost.test>
From: =?iso-8859-1?q?Andr=E9?= <andre@example.net>
Content-Type: text/plain; charset=UTF-8
Content-Transfer-Encoding: quoted-printable

Gr=C3=BC=C3=9Fe aus K=C3=B6ln, wo es seit gestern so stark regnet, dass =
man das andere Ufer nicht mehr sieht.

Andr=C3=A9
";

const ALTERNATIVE: &str = "\
Received: from mx.example.net (mx.example.net [192.0.2.7])
\tby mail.barepost.test with ESMTPS id 00000000000004d2;
\tSat, 21 Nov 2026 09:55:08 +0000
Message-ID: <5d2a0e5c@example.net>
Date: Sat, 21 Nov 2026 10:55:06 +0100
MIME-Version: 1.0
Subject: The news
To: \"Ada Lovelace\" <ada@barepost.test>
From: \"Example, Ltd.\" <news@example.net>
Content-Type: multipart/alternative; boundary=\"000000000000a1b2c3d4\"

--000000000000a1b2c3d4
Content-Type: text/plain; charset=\"UTF-8\"

There is news, and it is good.

--000000000000a1b2c3d4
Content-Type: text/html; charset=\"UTF-8\"

<html><head><style>p { color: red }</style></head><body><p>There is <b>news</b>, and it is good.</p></body></html>

--000000000000a1b2c3d4--
";
