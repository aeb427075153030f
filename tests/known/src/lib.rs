//! DNS records in the form that the crate mail-auth queries, for tests that compare our results
//! with those of mail-auth.
//!
//! mail-auth is asynchronous and queries name servers. These tests give it no name server. All
//! records that it needs are in its caches, so that it never waits. The caches cannot express that
//! a name has no addresses. But its resolver finds no addresses for names under `invalid`, without
//! a query (RFC 6761 §6.4).
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

/// The authenticator of mail-auth, without a name server.
#[expect(clippy::expect_used, reason = "the configuration is constant")]
pub static AUTHENTICATOR: LazyLock<MessageAuthenticator> = LazyLock::new(|| {
    let no_servers = ResolverConfig::from_parts(None, Vec::new(), Vec::new());
    MessageAuthenticator::new(no_servers, ResolverOpts::default()).expect("a resolver")
});

/// The known records of one kind.
pub struct Known<T> {
    under: BTreeMap<String, T>,
    otherwise: Box<Otherwise<T>>,
    asked: Mutex<Vec<(String, bool)>>,
}

/// The records of a name that is not listed. `None` leaves the name to the resolver.
type Otherwise<T> = dyn Fn(&str) -> Option<T> + Send + Sync;

impl<T> Known<T> {
    /// `under`: the names, without a trailing dot, and their records. `otherwise`: the records of
    /// all other names.
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

    /// The names that were queried, and whether they have records.
    pub fn asked(&self) -> Vec<(String, bool)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Known<Txt> {
    /// `under`: the names and their texts. Other names have no texts.
    pub fn texts(under: impl IntoIterator<Item = (String, Txt)>) -> Known<Txt> {
        Known::new(under, |_| Some(first::<Txt>([])))
    }
}

/// The first valid text of several, or the error of the last text.
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

/// The result if name servers do not answer.
pub fn silence() -> Txt {
    Txt::Error(Error::Dns(DnsError::Resolver("silence".into())))
}

/// A response of name servers.
pub fn records<T>(records: impl Into<Vec<T>>) -> RecordSet<T> {
    RecordSet { rrset: records.into().into(), dnssec_status: DnssecStatus::Indeterminate }
}

impl<K, T: Clone> ResolverCache<K, T> for Known<T> {
    fn get<Q: Hash + Eq + ?Sized>(&self, name: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        // The name's type is only known to implement `Hash`. So a hasher collects its text.
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

/// A hasher that collects the hashed bytes.
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
