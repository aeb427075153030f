//! The walk from a domain up to the top of the tree, and the organization that owns the domain (RFC
//! 9989, DNS tree walk).

use alloc::format;
use alloc::vec::Vec;

use dns::{Knowledge, Missing, Name, Question, Record as DnsRecord, RecordKind, Unanswered};

use crate::record::{DmarcRecord, DomainRole, is_record};

/// The most names that are looked up on the walk. If a domain has more parents, the names are the
/// domain itself and its shortest parents.
pub const WALK_MAX: usize = 8;

/// Why a walk stops.
pub(crate) enum WalkStop {
    Temporary,
    Missing(Missing),
}

impl From<Missing> for WalkStop {
    fn from(missing: Missing) -> WalkStop {
        WalkStop::Missing(missing)
    }
}

impl From<Unanswered> for WalkStop {
    fn from(_: Unanswered) -> WalkStop {
        WalkStop::Temporary
    }
}

/// The records found on the walk up from a domain.
pub(crate) struct Walk {
    start: Name,
    /// The names with records, from the longest to the shortest.
    found: Vec<(Name, DmarcRecord)>,
}

impl Walk {
    /// Walks up from a domain, until a record states a role.
    pub(crate) fn from(start: &Name, knowledge: &Knowledge) -> Result<Walk, WalkStop> {
        let mut found = Vec::new();
        let names: Vec<Name> = lineage(start).collect();
        let passed_over = 1..names.len().saturating_sub(WALK_MAX - 1).max(1);
        for (number, name) in names.into_iter().enumerate() {
            if passed_over.contains(&number) {
                continue;
            }
            if let Some(record) = record_of(&name, knowledge)? {
                let is_last = record.role != DomainRole::Unstated;
                found.push((name, record));
                if is_last {
                    break;
                }
            }
        }
        Ok(Walk { start: start.clone(), found })
    }

    /// The organizational domain: the highest domain with a record, or the domain just below a
    /// public suffix.
    pub(crate) fn organization(&self) -> Name {
        let organization = match self.found.last() {
            Some((public, DmarcRecord { role: DomainRole::Public, .. })) => {
                lineage(&self.start).find(|below| below.parent().as_ref() == Some(public))
            }
            highest => highest.map(|(name, _)| name.clone()),
        };
        organization.unwrap_or_else(|| self.start.clone())
    }

    /// The record that applies to the domain, and its owner: the domain itself, its organization,
    /// or the public suffix above.
    pub(crate) fn record(&self) -> Option<&(Name, DmarcRecord)> {
        let of = |wanted: &Name| self.found.iter().find(|(name, _)| name == wanted);
        let public = || self.found.iter().find(|(_, record)| record.role == DomainRole::Public);
        of(&self.start).or_else(|| of(&self.organization())).or_else(public)
    }
}

/// A name and its parents, without the root.
fn lineage(name: &Name) -> impl Iterator<Item = Name> {
    core::iter::successors(Some(name.clone()), Name::parent).filter(|name| !name.is_root())
}

/// The record of a domain. Several records count as none.
fn record_of(name: &Name, knowledge: &Knowledge) -> Result<Option<DmarcRecord>, WalkStop> {
    let Ok(name) = Name::parse(&format!("_dmarc.{}", name.as_str())) else { return Ok(None) };
    let answer = knowledge.of(Question { name, kind: RecordKind::Text })??;
    let mut records = answer.records.iter().filter_map(|record| match record {
        DnsRecord::Text(text) if is_record(text) => Some(text),
        _ => None,
    });
    match (records.next(), records.next()) {
        (Some(text), None) => Ok(DmarcRecord::read(text)),
        _ => Ok(None),
    }
}
