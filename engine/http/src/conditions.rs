//! Conditional requests: a client asks for a representation on the condition that it has changed,
//! or that it has not changed.
//!
//! Implements: RFC 9110 sections 8.8.3 and 13.

use crate::coding::Coding;
use crate::date;
use crate::head::{FieldName, RequestHead, list};
use crate::site::{Resource, Tag};

/// The result of a request's conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConditionResult {
    /// The request is served as usual.
    Proceed,
    /// The client already has this representation: 304.
    NotModified,
    /// A precondition does not hold: 412.
    Failed,
}

/// The representation that the conditions are compared with: a file in one coding.
#[derive(Clone, Copy)]
pub(crate) struct Selected<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) coding: Coding,
}

impl Selected<'_> {
    fn tag(self) -> Tag {
        self.resource.tag(self.coding)
    }

    fn modified(self) -> u64 {
        self.resource.modified_seconds()
    }
}

/// Evaluates the conditions of a GET or HEAD request in the order of RFC 9110 section 13.2.2.
pub(crate) fn evaluate(head: &RequestHead<'_, '_>, own: Selected<'_>) -> ConditionResult {
    if head.values(FieldName::IfMatch).next().is_some() {
        if !head
            .values(FieldName::IfMatch)
            .any(|value| names(value, &own.tag(), Comparison::Strong))
        {
            return ConditionResult::Failed;
        }
    } else if let Some(since) = date_of(head, FieldName::IfUnmodifiedSince)
        && own.modified() > since
    {
        return ConditionResult::Failed;
    }
    if head.values(FieldName::IfNoneMatch).next().is_some() {
        if head
            .values(FieldName::IfNoneMatch)
            .any(|value| names(value, &own.tag(), Comparison::Weak))
        {
            return ConditionResult::NotModified;
        }
    } else if let Some(since) = date_of(head, FieldName::IfModifiedSince)
        && own.modified() <= since
    {
        return ConditionResult::NotModified;
    }
    ConditionResult::Proceed
}

/// Whether `If-Range` allows a range response. The part that the client already has must come from
/// exactly this representation (RFC 9110 section 13.1.5).
pub(crate) fn allows_range(head: &RequestHead<'_, '_>, own: Selected<'_>) -> bool {
    match head.only(FieldName::IfRange) {
        Ok(None) => true,
        Ok(Some(value)) if value.first() == Some(&b'"') => own.tag().as_bytes() == value,
        // The date must equal the date that we sent.
        Ok(Some(value)) => date::parse(value) == Some(own.modified()),
        Err(_) => false,
    }
}

/// The comparison of entity tags (RFC 9110 section 8.8.3.2). Our tags are strong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// Whether a list of entity tags, or `*`, names our tag.
fn names(value: &[u8], own: &Tag, comparison: Comparison) -> bool {
    list(value).any(|item| match item.strip_prefix(b"W/") {
        _ if item == b"*" => true,
        Some(weak) => comparison == Comparison::Weak && weak == own.as_bytes(),
        None => item == own.as_bytes(),
    })
}

/// The date in the field `name`. A malformed date is ignored. A field that occurs twice is ignored
/// too.
fn date_of(head: &RequestHead<'_, '_>, name: FieldName) -> Option<u64> {
    date::parse(head.only(name).ok()??)
}
