//! Checks whether the DNS has the wanted records. If it has other records in their place, checks
//! whether they serve the purpose as well.

use std::fmt;
use std::net::IpAddr;

use configuration::{Relay, RelayHost};
use dkim::{MessageReader, SignatureReason, SigningKey};
use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};
use machine::UnixTime;

use super::is_public;
use super::records::{Wanted, Written};

/// The result for one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Finding {
    /// The record exists.
    Right,
    /// Another record exists that serves the purpose as well.
    AsGood(String),
    /// No record of this kind exists.
    Missing,
    /// Another record exists that does not serve the purpose, or too many records exist.
    Wrong(String),
    /// The name servers do not answer.
    Unknown(Unanswered),
}

impl Finding {
    pub(super) fn is_right(&self) -> bool {
        matches!(self, Finding::Right | Finding::AsGood(_))
    }

    /// The finding as a line for people.
    pub(super) fn line(&self, wanted: &Wanted) -> String {
        match self {
            Finding::Right => format!("right    {wanted}"),
            Finding::AsGood(what) => format!("right    {wanted}: {what}"),
            Finding::Missing => format!("missing  {wanted}"),
            Finding::Wrong(what) => format!("wrong    {wanted}: {what}"),
            Finding::Unknown(why) => format!("unknown  {wanted}: {why}"),
        }
    }
}

/// The addresses that send mail of the domains.
#[derive(Clone, Copy)]
pub(super) struct Senders<'a> {
    /// The machine's addresses.
    pub(super) own: &'a [IpAddr],
    /// The addresses of the hosts that relay the machine's mail.
    pub(super) smarthosts: &'a [IpAddr],
}

/// The addresses of the smarthosts, without private addresses.
pub(super) fn addresses_of(
    relay: &Relay,
    ask: &mut impl FnMut(Question) -> Result<Answer, Unanswered>,
) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for smarthost in relay.smarthosts() {
        match &smarthost.place.host {
            RelayHost::Address(address) => addresses.extend(Some(*address).filter(is_public)),
            RelayHost::Name(name) => {
                let Ok(name) = Name::parse(name.as_str()) else { continue };
                for kind in [RecordKind::Ipv4, RecordKind::Ipv6] {
                    let Ok(answer) = ask(Question { name: name.clone(), kind }) else { continue };
                    addresses.extend(answer.records.iter().filter_map(|record| match record {
                        Record::Address(address) => Some(*address),
                        _ => None,
                    }));
                }
            }
        }
    }
    addresses
}

/// Looks up a record and compares. `ask` asks name servers. `keys`: the keys that sign messages.
pub(super) fn judge(
    wanted: &Wanted,
    keys: &[SigningKey],
    senders: &Senders<'_>,
    ask: &mut impl FnMut(Question) -> Result<Answer, Unanswered>,
) -> Finding {
    let records = match ask(wanted.question()) {
        Ok(answer) => answer.records,
        Err(why) => return Finding::Unknown(why),
    };
    let is_key = |key: &&SigningKey| wanted.record == Record::Text(key.record().as_bytes().into());
    if let Some(key) = keys.iter().find(is_key) {
        return judge_key(key, wanted, &records);
    }
    let alike: Vec<&Record> =
        records.iter().filter(|record| is_alike(record, &wanted.record)).collect();
    let others: Vec<&Record> =
        alike.iter().copied().filter(|record| **record != wanted.record).collect();
    let is_there = others.len() < alike.len();
    match &wanted.record {
        _ if alike.is_empty() => Finding::Missing,
        Record::Text(_) if alike.len() > 1 => {
            Finding::Wrong(format!("several records found, so none is valid: {}", Several(&alike)))
        }
        Record::Text(text) if !is_there => judge_text(text, wanted, &others, senders, ask),
        Record::Address(_) if is_there && !others.is_empty() => {
            Finding::AsGood(format!("also found {}", Several(&others)))
        }
        _ if is_there => Finding::Right,
        Record::Exchanger { host, .. }
            if others.iter().any(
                |record| matches!(record, Record::Exchanger { host: other, .. } if other == host),
            ) =>
        {
            Finding::Right
        }
        _ => Finding::Wrong(format!("found {}", Several(&others))),
    }
}

/// Whether both records serve the same purpose. A name may have TXT records for other purposes.
fn is_alike(record: &Record, wanted: &Record) -> bool {
    match (record, wanted) {
        (Record::Text(text), Record::Text(wanted)) => {
            version(text).eq_ignore_ascii_case(version(wanted))
        }
        _ => true,
    }
}

/// The beginning of a text that names its version, such as `v=spf1`.
fn version(text: &[u8]) -> &[u8] {
    text.split(|byte| matches!(byte, b' ' | b';')).next().unwrap_or_default()
}

/// Compares the TXT records at the name of a key with the key. Every TXT record there counts as a
/// key. A trial signature shows whether a different text contains the same key.
fn judge_key(key: &SigningKey, wanted: &Wanted, records: &[Record]) -> Finding {
    let texts: Vec<&Record> =
        records.iter().filter(|record| matches!(record, Record::Text(_))).collect();
    match texts[..] {
        [] => Finding::Missing,
        [text] if *text == wanted.record => Finding::Right,
        [text] => match reason_with(key, wanted, text) {
            Some(SignatureReason::Verified) => {
                Finding::AsGood(format!("found {}, which is the same key", Written(text)))
            }
            reason => {
                let reason =
                    reason.map(|reason| format!(", with which our signatures fail: {reason}"));
                Finding::Wrong(format!("found {}{}", Written(text), reason.unwrap_or_default()))
            }
        },
        _ => Finding::Wrong(format!(
            "several keys found, of which other servers may use any: {}",
            Several(&texts)
        )),
    }
}

/// The DKIM result of a message that `key` has signed, if the domain has published `text`.
fn reason_with(key: &SigningKey, wanted: &Wanted, text: &Record) -> Option<SignatureReason> {
    let (_, domain) = wanted.owner.as_str().split_once("._domainkey.")?;
    let message = format!("From: postmaster@{domain}\r\n\r\n");
    let now = UnixTime::from_seconds(0);
    let mut unsigned = MessageReader::to_sign();
    unsigned.arrived(message.as_bytes());
    let field = unsigned.ended().sign(key, &Name::parse(domain).ok()?, now).ok()?;
    let mut signed = MessageReader::to_verify();
    signed.arrived((field + &message).as_bytes());
    let mut knowledge = Knowledge::default();
    let answer = Answer { exists: true, records: vec![text.clone()], is_authenticated: false };
    knowledge.learn(wanted.question(), Ok(answer));
    signed.ended().verify(0, &knowledge, now).ok().map(|verdict| verdict.reason)
}

/// The finding for TXT records that differ from the wanted `text`.
fn judge_text(
    text: &[u8],
    wanted: &Wanted,
    others: &[&Record],
    senders: &Senders<'_>,
    ask: &mut impl FnMut(Question) -> Result<Answer, Unanswered>,
) -> Finding {
    let said = Several(others);
    match version(text) {
        b"v=spf1" => {
            let mut refused = |addresses: &[IpAddr]| {
                let mut verdicts =
                    addresses.iter().map(|address| (*address, spf_verdict(*address, wanted, ask)));
                verdicts.find(|(_, verdict)| *verdict != spf::SpfVerdict::Pass)
            };
            // A smarthost may send from addresses that only an `include:` of its operator names.
            let includes = others
                .iter()
                .any(|other| matches!(other, Record::Text(text) if mentions(text, b"include:")));
            let wrong = |(address, verdict)| {
                Finding::Wrong(format!(
                    "found {said}, with which mail from {address} gets the SPF result {verdict}"
                ))
            };
            match (refused(senders.own), refused(senders.smarthosts)) {
                (Some(own), _) => wrong(own),
                (None, _) if senders.own.is_empty() => Finding::Wrong(format!("found {said}")),
                (None, None) => {
                    Finding::AsGood(format!("found {said}, which allows this machine to send"))
                }
                (None, Some(_)) if includes => Finding::AsGood(format!(
                    "found {said}; ask the operator of the smarthost whether this includes its addresses"
                )),
                (None, Some(smarthost)) => wrong(smarthost),
            }
        }
        b"v=DMARC1" => match dmarc_verdict(wanted, ask) {
            dmarc::DmarcVerdict::Fail(_) => Finding::AsGood(format!("found {said}")),
            _ => Finding::Wrong(format!("found {said}, which is not a valid policy")),
        },
        b"v=STSv1" if text_has_id(others) => {
            Finding::AsGood(format!("found {said}; the id must change whenever the policy changes"))
        }
        b"v=TLSRPTv1" => Finding::AsGood(format!("found {said}")),
        _ => Finding::Wrong(format!("found {said}")),
    }
}

fn text_has_id(records: &[&Record]) -> bool {
    records.iter().any(|record| matches!(record, Record::Text(text) if mentions(text, b"id=")))
}

fn mentions(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|found| found.eq_ignore_ascii_case(word))
}

/// The SPF result for mail from an address, by the policy at the wanted record's name.
fn spf_verdict(
    address: IpAddr,
    wanted: &Wanted,
    ask: &mut impl FnMut(Question) -> Result<Answer, Unanswered>,
) -> spf::SpfVerdict {
    let domain = wanted.owner.as_str();
    let sender = spf::SpfSender { address, hello: domain, local_part: "postmaster", domain };
    check_with_answers(ask, |knowledge| spf::check(&sender, knowledge))
}

/// The DMARC result for unauthenticated mail from the domain above the wanted record's name.
fn dmarc_verdict(
    wanted: &Wanted,
    ask: &mut impl FnMut(Question) -> Result<Answer, Unanswered>,
) -> dmarc::DmarcVerdict {
    let Some(author) = wanted.owner.parent() else { return dmarc::DmarcVerdict::None };
    let origins = dmarc::MessageOrigins { author: &author, sender: None, signers: &[] };
    check_with_answers(ask, |knowledge| dmarc::check(&origins, knowledge))
}

/// Repeats a check, and asks for each missing answer, until the check has a result.
fn check_with_answers<V>(
    ask: &mut impl FnMut(Question) -> Result<Answer, Unanswered>,
    check: impl Fn(&Knowledge) -> Result<V, Missing>,
) -> V {
    let mut knowledge = Knowledge::default();
    loop {
        match check(&knowledge) {
            Ok(verdict) => return verdict,
            Err(Missing(question)) => {
                let answer = ask(question.clone());
                knowledge.learn(question, answer);
            }
        }
    }
}

struct Several<'a>(&'a [&'a Record]);

impl fmt::Display for Several<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written: Vec<String> =
            self.0.iter().map(|record| Written(record).to_string()).collect();
        out.write_str(&written.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use configuration::Configuration;
    use dns::Name;

    use super::super::records::wanted;
    use super::super::tests::key;
    use super::*;

    const CONFIGURATION: &str = "hostname = 'mail.a.test'\ndomains = ['a.test']\n";
    const ADDRESS: &str = "192.0.2.7";

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn text(text: &str) -> Record {
        Record::Text(text.as_bytes().into())
    }

    /// The findings that are not right. All records are as wanted, except that `owner` has
    /// `records` in place of its records of the same kind.
    fn findings(owner: &str, records: &[Record]) -> Vec<String> {
        findings_for("", owner, records)
    }

    /// Like `findings`, for a machine with the lines `more` in its configuration.
    fn findings_for(more: &str, owner: &str, records: &[Record]) -> Vec<String> {
        let own = [ADDRESS.parse().unwrap()];
        let keys = [key("key", 1)];
        let configuration = Configuration::parse(&[CONFIGURATION, more].concat()).unwrap();
        let all = wanted(&configuration, &keys, &own).unwrap();
        let kind = records.first().map(std::mem::discriminant);
        let is_replaced =
            |record: &Record| kind.is_none_or(|kind| kind == std::mem::discriminant(record));
        let mut ask = |question: Question| {
            let own = all
                .iter()
                .filter(|wanted| wanted.question() == question)
                .map(|wanted| wanted.record.clone());
            let own: Vec<Record> = own.collect();
            let is_here = question.name == name(owner) && own.iter().all(is_replaced);
            let records = if is_here { records.to_vec() } else { own };
            Ok(Answer { exists: !records.is_empty(), records, is_authenticated: false })
        };
        let smarthosts = addresses_of(&configuration.relay, &mut ask);
        let senders = Senders { own: &own, smarthosts: &smarthosts };
        let judged = all.iter().map(|wanted| (judge(wanted, &keys, &senders, &mut ask), wanted));
        judged
            .filter(|(finding, _)| *finding != Finding::Right)
            .map(|(finding, wanted)| finding.line(wanted))
            .collect()
    }

    #[test]
    fn present_dns_records_are_right() {
        assert!(findings("elsewhere.test", &[]).is_empty());
    }

    #[test]
    fn absent_dns_records_are_reported_missing() {
        assert_eq!(findings("_smtp._tls.a.test", &[]).len(), 1);
        assert!(
            findings("_smtp._tls.a.test", &[])[0].starts_with("missing  _smtp._tls.a.test. IN TXT")
        );
        // Unrelated texts at the same name do not matter.
        let found = findings("a.test", &[text("something=else")]);
        assert_eq!(found, ["missing  a.test. IN TXT \"v=spf1 mx -all\""]);
    }

    #[test]
    fn another_mx_host_is_wrong_and_another_preference_is_not() {
        let exchanger = |preference, host| Record::Exchanger { preference, host: name(host) };
        let found = findings("a.test", &[exchanger(10, "mail.b.test")]);
        assert_eq!(found, ["wrong    a.test. IN MX 10 mail.a.test.: found MX 10 mail.b.test."]);
        assert!(
            findings("a.test", &[exchanger(5, "mail.b.test"), exchanger(20, "mail.a.test")])
                .is_empty()
        );
    }

    #[test]
    fn another_policy_is_as_good_if_the_machine_may_send_by_it() {
        let found = findings("a.test", &[text("v=spf1 ip4:192.0.2.0/24 ~all"), text("v=other")]);
        assert!(
            found[0].starts_with("right    a.test. IN TXT")
                && found[0].ends_with("allows this machine to send"),
            "{found:?}"
        );
        let found = findings("a.test", &[text("v=spf1 ip4:192.0.2.8 -all")]);
        assert!(
            found[0].starts_with("wrong    a.test.")
                && found[0].ends_with("from 192.0.2.7 gets the SPF result fail"),
            "{found:?}"
        );
        let found = findings("a.test", &[text("v=spf1 mx -all"), text("v=spf1 -all")]);
        assert!(
            found[0].starts_with("wrong    a.test.") && found[0].contains("so none is valid"),
            "{found:?}"
        );
    }

    #[test]
    fn spf_policy_must_allow_the_smarthost_or_include_another() {
        let relay = "[relay]\nsmarthost = '192.0.2.99:25'\n";
        assert!(findings_for(relay, "elsewhere.test", &[]).is_empty());
        let found = findings_for(relay, "a.test", &[text("v=spf1 mx -all")]);
        assert!(
            found[0].starts_with("wrong    a.test.")
                && found[0].ends_with("from 192.0.2.99 gets the SPF result fail"),
            "{found:?}"
        );
        let found = findings_for(relay, "a.test", &[text("v=spf1 mx ip4:192.0.2.64/26 -all")]);
        assert!(
            found[0].starts_with("right    a.test.")
                && found[0].ends_with("allows this machine to send"),
            "{found:?}"
        );
        let found = findings_for(relay, "a.test", &[text("v=spf1 mx include:spf.b.test -all")]);
        assert!(
            found[0].starts_with("right    a.test.")
                && found[0].ends_with("whether this includes its addresses"),
            "{found:?}"
        );
        let found = findings_for(relay, "a.test", &[text("v=spf1 include:spf.b.test -all")]);
        assert!(
            found[0].starts_with("wrong    a.test.") && found[0].contains("from 192.0.2.7 gets"),
            "{found:?}"
        );
    }

    #[test]
    fn another_valid_dmarc_policy_is_as_good() {
        let found = findings("_dmarc.a.test", &[text("v=DMARC1; p=none")]);
        assert!(found[0].starts_with("right    _dmarc.a.test."), "{found:?}");
        let found = findings("_dmarc.a.test", &[text("v=DMARC1 p=none")]);
        assert!(
            found[0].starts_with("wrong    _dmarc.a.test.")
                && found[0].ends_with("which is not a valid policy"),
            "{found:?}"
        );
    }

    #[test]
    fn a_key_is_right_if_signatures_pass_with_it() {
        let owner = "key._domainkey.a.test";
        let [own, other] = [1, 2].map(|number| key("key", number).record());
        assert!(
            findings(owner, &[])[0]
                .starts_with(&format!("missing  {owner}. IN TXT \"v=DKIM1; k=ed25519; p="))
        );
        let spaced = own.replace("v=DKIM1; k", "k").replace(';', " ;");
        let found = findings(owner, &[text(&spaced)]);
        assert!(
            found[0].starts_with("right    key.") && found[0].ends_with("which is the same key"),
            "{found:?}"
        );
        for (record, reason) in [
            (other, "fail: the signature is not valid"),
            (own.replace("v=DKIM1; ", "v=DKIM1; t=y; "), "fail: the domain is testing DKIM"),
            ("v=DKIM1; k=ed25519; p=".into(), "fail: the domain has revoked the key"),
            ("v=spf1 -all".into(), "fail: "),
        ] {
            let found = findings(owner, &[text(&record)]);
            assert!(
                found[0].starts_with("wrong    key.") && found[0].contains(reason),
                "{found:?}"
            );
        }
        let found = findings(owner, &[text(&own), text("v=spf1 -all")]);
        assert!(
            found[0].starts_with("wrong    key.") && found[0].contains("several keys found"),
            "{found:?}"
        );
    }

    #[test]
    fn address_and_ptr_records_must_match_the_machine() {
        let found = findings("mail.a.test", &[Record::Address("192.0.2.9".parse().unwrap())]);
        assert_eq!(found, ["wrong    mail.a.test. IN A 192.0.2.7: found A 192.0.2.9"]);
        let both = ["192.0.2.9", ADDRESS].map(|address| Record::Address(address.parse().unwrap()));
        assert_eq!(
            findings("mail.a.test", &both),
            ["right    mail.a.test. IN A 192.0.2.7: also found A 192.0.2.9"]
        );
        let found =
            findings("7.2.0.192.in-addr.arpa", &[Record::Pointer(name("host7.provider.test"))]);
        assert_eq!(
            found,
            [
                "wrong    7.2.0.192.in-addr.arpa. IN PTR mail.a.test.: found PTR host7.provider.test."
            ]
        );
    }

    #[test]
    fn silent_name_servers_leave_records_unknown() {
        let all = wanted(&Configuration::parse(CONFIGURATION).unwrap(), &[], &[]).unwrap();
        let finding = judge(&all[0], &[], &Senders { own: &[], smarthosts: &[] }, &mut |_| {
            Err(Unanswered::Silence)
        });
        assert_eq!(finding, Finding::Unknown(Unanswered::Silence));
        assert!(!finding.is_right());
    }
}
