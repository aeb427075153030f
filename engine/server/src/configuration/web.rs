//! `[web]`: what is served by HTTP.

use alloc::string::{String, ToString};

use super::document::Section;
use super::error::ConfigurationError;

/// What is served by HTTP.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Web {
    /// The folder whose files are served, as the file names it; without one there are none.
    pub site: Option<String>,
    /// Whether pages are given over TLS alone: who asks for one in the clear is sent on.
    pub https_only: bool,
    /// Whether every request is told of on the console.
    pub access_log: bool,
}

pub(super) fn web(section: &Section<'_, '_>) -> Result<Web, ConfigurationError> {
    section.refuse_unknown(&["site", "https_only", "access_log"])?;
    let site = section.optional("site").map(|item| -> Result<String, ConfigurationError> {
        let expected = "the folder of the site's files, such as \"site/\"";
        match item.string(expected)? {
            "" => Err(item.error("the name of the folder is empty", expected)),
            name => Ok(name.to_string()),
        }
    });
    let https_only = section.optional("https_only").map(|item| item.boolean()).transpose()?.unwrap_or_default();
    let access_log = section.optional("access_log").map(|item| item.boolean()).transpose()?.unwrap_or_default();
    Ok(Web { site: site.transpose()?, https_only, access_log })
}
