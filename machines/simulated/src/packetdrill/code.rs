//! Code in scripts: Python's `assert` about a kernel's `tcp_info`. The engine lacks the kernel's
//! internal counters, so a script that asserts them is not applicable. A script that only prints
//! them is applicable.

use super::verdict::ScriptStop;

/// The reason why code makes a script not applicable; `None` if it does not.
pub(super) fn beyond(code: &str) -> Option<String> {
    let statements =
        code.split(['\n', ';']).map(str::trim).filter(|statement| !statement.is_empty());
    let asserts: Vec<&str> = statements.filter(|statement| !is_idle(statement)).collect();
    let first = asserts.first()?;
    let field = first
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .find(|word| word.starts_with("tcpi_"));
    Some(match field {
        Some(field) => format!("a kernel's own books are not there ({field})"),
        None => format!("what the code looks at is not there (`{first}`)"),
    })
}

/// Whether a statement asserts nothing.
fn is_idle(statement: &str) -> bool {
    ["print", "import ", "#", "pass", "from "].iter().any(|start| statement.starts_with(start))
}

/// Checks that no statement of the code asserts anything.
pub(super) fn check(line: usize, code: &str) -> Result<(), ScriptStop> {
    beyond(code).map_or(Ok(()), |reason| Err(ScriptStop::not_applicable(line, reason)))
}
