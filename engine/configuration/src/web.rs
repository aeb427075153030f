//! `[web]`: the HTTP service.

use alloc::format;
use alloc::string::{String, ToString};

use super::document::UncheckedSection;
use super::error::ConfigurationError;
use super::keys::keys;
use super::values::{HostName, Value};

/// The path of the MTA-STS policy of a domain, at its host `mta-sts` (RFC 8461 §3.3).
pub const POLICY_PATH: &str = "/.well-known/mta-sts.txt";

/// The `max_age` of the policy: two weeks.
const POLICY_SECONDS: u32 = 14 * 24 * 3600;

keys! {
    KEYS, described, "[web]", [],
    "The HTTP service on ports 80 and 443.";
    "site" {
        form: "folder name",
        default: "no site",
        range: "a folder with up to 64 MiB of packed files, relative to the configuration",
        example: r#""site/""#,
        meaning: "The folder of the files that are served. It is packed when the machine starts, \
            with gzip and brotli forms of files that become shorter so. `404.html` at its top is \
            the page for files that do not exist, and pages for other statuses are named likewise. \
            Names that begin with a dot are not served, except `.well-known`.",
    }
    "https_only" {
        form: "boolean",
        default: "`false`",
        range: "`true` or `false`",
        example: "false",
        meaning: "Whether requests on port 80 are redirected to port 443, and browsers are told to \
            use TLS only (HSTS). Browsers are told so in any case while an authority of the web \
            has issued every certificate.",
    }
    "access_log" {
        form: "boolean",
        default: "`false`",
        range: "`true` or `false`",
        example: "false",
        meaning: "Whether every request is logged to the console.",
    }
    "mta_sts" {
        form: "string",
        default: "no policy",
        range: "`\"testing\"`, `\"enforce\"` or `\"none\"`",
        example: r#""testing""#,
        meaning: "The mode of the MTA-STS policy of all domains. With `\"enforce\"` other servers \
            deliver mail for them only to this host, over TLS with a valid certificate. With \
            `\"testing\"` they only report problems. `\"none\"` withdraws an earlier policy. See \
            [sending.md](sending.md#the-policy-of-your-own-domains).",
    }
}

/// The settings of the HTTP service.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WebSettings {
    /// The folder of the static site, as named in the configuration. `None`: there is no site.
    pub site: Option<String>,
    /// Whether pages are served only over TLS. If so, a plaintext request is redirected.
    pub https_only: bool,
    /// Whether every request is logged to the console.
    pub access_log: bool,
    /// The mode of the MTA-STS policy of our domains. `None`: there is no policy.
    pub mta_sts: Option<PolicyMode>,
}

/// The mode of an MTA-STS policy, which tells other servers what to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyMode {
    /// Deliver no mail to a host that does not match the policy.
    Enforce,
    /// Only report hosts that do not match.
    Testing,
    /// Forget an earlier policy.
    None,
}

impl PolicyMode {
    fn word(self) -> &'static str {
        match self {
            PolicyMode::Enforce => "enforce",
            PolicyMode::Testing => "testing",
            PolicyMode::None => "none",
        }
    }
}

impl Value for PolicyMode {
    const FORM: &'static str =
        "\"enforce\", \"testing\", or \"none\" to withdraw an earlier policy";

    fn parse(text: &str) -> Result<PolicyMode, &'static str> {
        let all = [PolicyMode::Enforce, PolicyMode::Testing, PolicyMode::None];
        all.into_iter().find(|mode| mode.word() == text).ok_or("this is not a valid mode")
    }
}

impl WebSettings {
    /// The text of the MTA-STS policy of all our domains (RFC 8461 §3.2), if they have one. `host`:
    /// their MX host.
    pub fn policy(&self, host: &HostName) -> Option<String> {
        let mode = self.mta_sts?.word();
        Some(format!(
            "version: STSv1\r\nmode: {mode}\r\nmx: {host}\r\nmax_age: {POLICY_SECONDS}\r\n"
        ))
    }
}

pub(super) fn web(table: UncheckedSection<'_, '_>) -> Result<WebSettings, ConfigurationError> {
    let section = table.section(KEYS)?;
    let site = section.optional("site").map(|item| -> Result<String, ConfigurationError> {
        let expected = "the folder of the site's files, such as \"site/\"";
        match item.string(expected)? {
            "" => Err(item.error("the name of the folder is empty", expected)),
            name => Ok(name.to_string()),
        }
    });
    let https_only =
        section.optional("https_only").map(|item| item.boolean()).transpose()?.unwrap_or_default();
    let access_log =
        section.optional("access_log").map(|item| item.boolean()).transpose()?.unwrap_or_default();
    let mta_sts = section.optional("mta_sts").map(|item| item.parsed()).transpose()?;
    Ok(WebSettings { site: site.transpose()?, https_only, access_log, mta_sts })
}
