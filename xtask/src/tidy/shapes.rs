//! Measures a source's text: the length of its functions, the types that it implements, and their
//! numbers of public fields.

/// A function with a body.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// The line where the function starts, counted from 1.
    pub(super) line: usize,
    /// The lines from its name to its last brace.
    pub(super) lines: usize,
}

/// The functions in `code`. Its comments and literals must be blanked.
pub(super) fn functions(code: &str) -> Vec<Function<'_>> {
    let mut functions = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code.get(..at).and_then(|before| before.chars().next_back()).is_some_and(is_word) {
            continue;
        }
        let rest = code.get(at..).unwrap_or_default();
        let name = rest.get(3..).unwrap_or_default();
        let name = name.get(..name.find(|c| !is_word(c)).unwrap_or(name.len())).unwrap_or_default();
        if let (false, Some(length)) = (name.is_empty(), body_end(rest)) {
            let lines = rest.get(..length).unwrap_or_default().lines().count();
            let line = code.get(..at).unwrap_or_default().matches('\n').count().saturating_add(1);
            functions.push(Function { name, line, lines });
        }
    }
    functions
}

/// The types of the unindented `impl` blocks in `code`, one for each block. Omits primitive types.
pub(super) fn implemented(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(implemented_by)
}

/// The type of the unindented `impl` block that `line` begins, unless the type is primitive.
fn implemented_by(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.chars().next()? {
        '<' => rest.get(generics(rest)..)?,
        ' ' => rest,
        _ => return None,
    };
    let rest = rest.rsplit_once(" for ").map_or(rest, |(_, of)| of).trim_start();
    let path = rest.get(..rest.find(|c: char| !is_word(c) && c != ':').unwrap_or(rest.len()))?;
    let name = path.rsplit("::").next()?;
    name.starts_with(char::is_uppercase).then_some(name)
}

/// The types in `code` that have public fields and `&mut self` methods. Returns the name and the
/// number of public fields of each.
pub(super) fn open_fields(code: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("struct ") {
        let rest = code.get(at + "struct ".len()..).unwrap_or_default();
        let name = rest.get(..rest.find(|c| !is_word(c)).unwrap_or(rest.len())).unwrap_or_default();
        let Some(end) = body_end(rest) else { continue };
        let fields =
            rest.get(..end).unwrap_or_default().lines().filter(|line| is_open_field(line)).count();
        if fields > 0 && has_methods_that_change(code, name) {
            found.push((name, fields));
        }
    }
    found
}

fn is_open_field(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("pub") else { return false };
    let rest = if rest.starts_with('(') {
        rest.split_once(") ").map_or("", |(_, rest)| rest)
    } else {
        rest
    };
    let name = rest.trim_start();
    name.find(|c| !is_word(c))
        .is_some_and(|end| end > 0 && name.get(end..).is_some_and(|rest| rest.starts_with(':')))
}

fn has_methods_that_change(code: &str, name: &str) -> bool {
    let mut rest = code;
    while let Some(at) = rest.find("\nimpl") {
        let block = rest.get(at + 1..).unwrap_or_default();
        let end = body_end(block).unwrap_or(block.len());
        let is_its_own = implemented_by(block.lines().next().unwrap_or_default()) == Some(name);
        if is_its_own && block.get(..end).is_some_and(|block| block.contains("&mut self")) {
            return true;
        }
        rest = block.get(end.max(1)..).unwrap_or_default();
    }
    false
}

/// The length of an item with a body in braces; `None` if a semicolon ends it.
fn body_end(item: &str) -> Option<usize> {
    let (mut depth, mut is_inside) = (0_usize, false);
    for (at, c) in item.char_indices() {
        match c {
            '{' if depth == 0 => is_inside = true,
            ';' if depth == 0 => return None,
            _ => {}
        }
        match c {
            '{' | '(' | '[' => depth = depth.saturating_add(1),
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 && is_inside {
            return Some(at + 1);
        }
    }
    None
}

/// The length of the generic parameters at the start of `text`.
fn generics(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth = depth.saturating_add(1),
            // A `>` after `-` is the arrow of a function type, and does not count.
            '>' if !text.get(..at).is_some_and(|before| before.ends_with('-')) => {
                depth = depth.saturating_sub(1)
            }
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// Whether `c` is a character of a name.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_measured_to_its_last_brace() {
        let code = "struct A;\n\nfn a(b: [u8; 4]) -> B {\n    if c {\n        d();\n    }\n}\nfn e();\ntrait F {\n    fn g() {}\n}\n";
        let found: Vec<_> =
            functions(code).iter().map(|one| (one.name, one.line, one.lines)).collect();
        assert_eq!(found, [("a", 3, 5), ("g", 10, 1)]);
    }

    #[test]
    fn the_type_of_an_impl_is_named_without_trait_and_generics() {
        let code = "impl Store {\nimpl<'a, F: Fn(u8) -> u8> fmt::Display for page::Line<'a> {\nimpl Drop for Guest {\n    impl Inner {}\nimpl From<A> for u64 {\n";
        assert_eq!(implemented(code).collect::<Vec<_>>(), ["Store", "Line", "Guest"]);
    }

    #[test]
    fn open_fields_count_where_methods_change_them() {
        let fields = "{\n    pub a: u8,\n    pub(crate) b: u8,\n    c: u8,\n}\n";
        let changes = "impl Open {\n    fn d(&mut self) {}\n}\n";
        assert_eq!(open_fields(&format!("pub struct Open {fields}\n{changes}")), [("Open", 2)]);
        assert_eq!(open_fields(&format!("pub struct Other {fields}\n{changes}")), []);
        assert_eq!(
            open_fields("pub struct Open(pub u8);\n\nimpl Open {\n    fn d(&mut self) {}\n}\n"),
            []
        );
    }
}
