//! The examples of RFC 6376 appendix A and RFC 8463 appendix A, with their keys.

use super::*;

const RFC_6376_KEY: &str = "v=DKIM1; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQ\
    KBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYt\
    IxN2SnFCjxOCKG9v3b4jYfcTNh5ijSsq631uBItLa7od+v\
    /RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4OuKhi\
    tdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB";
const RFC_6376_MESSAGE: &str = "DKIM-Signature: v=1; a=rsa-sha256; s=brisbane; d=example.com;
      c=simple/simple; q=dns/txt; i=joe@football.example.com;
      h=Received : From : To : Subject : Date : Message-ID;
      bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
      b=AuUoFEfDxTDkHlLXSZEpZj79LICEps6eda7W3deTVFOk4yAUoqOB
      4nujc7YopdG5dWLSdNg6xNAZpOPr+kHxt1IrE+NahM6L/LbvaHut
      KVdkLLkpVaVVQPzeRDI009SO2Il5Lu7rDNH6mZckBdrIx0orEtZV
      4bmp/YzhwvcubU4=;
Received: from client1.football.example.com  [192.0.2.1]
      by submitserver.example.com with SUBMISSION;
      Fri, 11 Jul 2003 21:01:54 -0700 (PDT)
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game. Are you hungry yet?

Joe.
";
const ED25519_KEY: &str = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const RSA_KEY: &str = "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWR\
    iGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutAC\
    DfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3\
    Ip3G+2kryOTIKT+l/K4w3QIDAQAB";
const RFC_8463_MESSAGE: &str = "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
";
/// A time after both examples were signed.
const LATER: UnixTime = UnixTime::from_seconds(1_600_000_000);

/// The verdicts on a message in pieces of this length, with the keys that the RFCs publish.
fn verdicts(message: &str, piece: usize) -> Vec<String> {
    let mut knowledge = Knowledge::default();
    for (name, text) in [
        ("brisbane._domainkey.example.com", RFC_6376_KEY),
        ("brisbane._domainkey.football.example.com", ED25519_KEY),
        ("test._domainkey.football.example.com", RSA_KEY),
    ] {
        let question = Question { name: Name::parse(name).unwrap(), kind: RecordKind::Text };
        let records = Vec::from([Record::Text(text.as_bytes().into())]);
        knowledge.learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
    }
    let mut reading = MessageReader::to_verify();
    message.replace('\n', "\r\n").as_bytes().chunks(piece).for_each(|piece| reading.arrived(piece));
    let message = reading.ended();
    (0..message.signatures())
        .map(|number| message.verify(number, &knowledge, LATER).unwrap().to_string())
        .collect()
}

const RFC_6376_VERDICT: &str =
    "dkim=pass header.d=example.com header.s=brisbane header.a=rsa-sha256 header.b=\"AuUoFEfD\"";
const RFC_8463_VERDICTS: [&str; 2] = [
    "dkim=pass header.d=football.example.com header.s=brisbane header.a=ed25519-sha256 header.b=\"/gCrinpc\"",
    "dkim=pass header.d=football.example.com header.s=test header.a=rsa-sha256 header.b=\"F45dVWDf\"",
];

#[test]
fn example_of_rfc_6376_passes_however_it_is_cut() {
    for piece in [1, 2, 3, 7, 100, 10_000] {
        assert_eq!(verdicts(RFC_6376_MESSAGE, piece), [RFC_6376_VERDICT], "{piece}");
    }
}

#[test]
fn example_of_rfc_8463_passes_with_both_signatures() {
    for piece in [1, 2, 3, 7, 100, 10_000] {
        assert_eq!(verdicts(RFC_8463_MESSAGE, piece), RFC_8463_VERDICTS, "{piece}");
    }
}

#[test]
fn changed_rfc_examples_fail() {
    for (from, to, reason) in [
        ("We lost", "We won", "the body was changed after signing"),
        ("dinner", "supper", "the signature is not valid"),
        ("Subject:", "Subject: an other\nSubject:", ""),
        ("Message-ID: ", "Subject: an other\nMessage-ID: ", "the signature is not valid"),
    ] {
        for message in [RFC_6376_MESSAGE, RFC_8463_MESSAGE] {
            let verdicts = verdicts(&message.replace(from, to), 64);
            // The signature of RFC 6376 does not cover fields that are added above the signed
            // fields. The signatures of RFC 8463 cover the absence of a second `Subject`.
            let harmless = reason.is_empty() && message == RFC_6376_MESSAGE;
            let reason = if reason.is_empty() { "the signature is not valid" } else { reason };
            let expected = if harmless {
                "dkim=pass".into()
            } else {
                format!("dkim=fail reason=\"{reason}\"")
            };
            assert!(
                verdicts.iter().all(|verdict| verdict.starts_with(&expected)),
                "{from} {verdicts:?}"
            );
        }
    }
}
