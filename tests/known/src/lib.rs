//! What is known of names as mail-auth asks for it, for tests that hold ours against it.
//!
//! It is asynchronous and asks name servers. Here it has none, and whatever it wants to know is in its caches, so that it never waits. One thing its caches cannot
//! say, that there are no addresses: but of names under `invalid` its resolver knows that by itself (RFC 6761 §6.4).
#![forbid(unsafe_code)]

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use mail_auth::hickory_resolver::config::{ResolverConfig, ResolverOpts};
use mail_auth::{
    DnsError, DnssecStatus, Error, MessageAuthenticator, RecordSet, ResolverCache, Txt,
};

/// It has no name server that it could ask.
#[expect(clippy::expect_used, reason = "nothing is asked of the host for it")]
pub static AUTHENTICATOR: LazyLock<MessageAuthenticator> = LazyLock::new(|| {
    let nobody = ResolverConfig::from_parts(None, Vec::new(), Vec::new());
    MessageAuthenticator::new(nobody, ResolverOpts::default()).expect("a resolver")
});

/// What is known of one kind of records.
pub struct Known<T> {
    under: BTreeMap<String, T>,
    otherwise: Box<Otherwise<T>>,
    asked: Mutex<Vec<(String, bool)>>,
}

/// What there is under a name of which nothing else is known; `None` leaves that to the resolver.
type Otherwise<T> = dyn Fn(&str) -> Option<T> + Send + Sync;

impl<T> Known<T> {
    /// These are under these names, which have no dot at their ends.
    pub fn new(
        under: impl IntoIterator<Item = (String, T)>,
        otherwise: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
    ) -> Known<T> {
        Known {
            under: under.into_iter().collect(),
            otherwise: Box::new(otherwise),
            asked: Mutex::default(),
        }
    }

    /// The names that were asked for, and whether something is under them.
    pub fn asked(&self) -> Vec<(String, bool)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Known<Txt> {
    /// These texts are under these names, and none under others.
    pub fn texts(under: impl IntoIterator<Item = (String, Txt)>) -> Known<Txt> {
        Known::new(under, |_| Some(first::<Txt>([])))
    }
}

/// Of several texts the first that is what it should be, or what is wrong with the last.
pub fn first<T>(texts: impl IntoIterator<Item = Result<T, Error>>) -> Txt
where
    Txt: From<Result<T, Error>>,
{
    let nothing = Err(Error::Dns(DnsError::InvalidRecordType));
    texts
        .into_iter()
        .fold(nothing, |before, text| if before.is_ok() { before } else { text })
        .into()
}

/// What there is where name servers are silent.
pub fn silence() -> Txt {
    Txt::Error(Error::Dns(DnsError::Resolver("silence".into())))
}

/// What name servers say.
pub fn records<T>(records: impl Into<Vec<T>>) -> RecordSet<T> {
    RecordSet { rrset: records.into().into(), dnssec_status: DnssecStatus::Indeterminate }
}

impl<K, T: Clone> ResolverCache<K, T> for Known<T> {
    fn get<Q: Hash + Eq + ?Sized>(&self, name: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        // Of a name nothing is said here but that it can be hashed.
        let mut spelled = Spelled::default();
        name.hash(&mut spelled);
        let name =
            String::from_utf8_lossy(&spelled.0).trim_end_matches(['\u{fffd}', '.']).to_string();
        let known = self.under.get(&name).cloned();
        let answer = known.clone().or_else(|| (self.otherwise)(&name));
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((name, known.is_some()));
        answer
    }

    fn remove<Q: Hash + Eq + ?Sized>(&self, _: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        None
    }

    fn insert(&self, _: K, _: T, _: Instant) {}
}

/// What is hashed.
#[derive(Default)]
struct Spelled(Vec<u8>);

impl Hasher for Spelled {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
