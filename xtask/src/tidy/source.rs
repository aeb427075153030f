//! Blanks the comments and string contents of Rust source, and keeps its lines. So words in a
//! comment cannot break a rule about code.

/// Blanks comments and the text of string and character literals. Line breaks stay.
pub(super) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = prose(rest, code.chars().next_back());
        if taken == 0 {
            code.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (prose, after) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        code.extend(prose.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    code
}

/// The part of a source before its test module.
pub(super) fn without_tests(code: &str) -> &str {
    match code.find("#[cfg(test)]\nmod tests {") {
        Some(at) => code.get(..at).unwrap_or(code),
        None => code,
    }
}

/// Whether `line` contains `word` as a whole word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after =
            line.get(at.saturating_add(word.len())..).and_then(|after| after.chars().next());
        !is_word(before) && !is_word(after)
    })
}

/// The bytes of a comment or literal at the start of `rest`. 0 if `rest` begins with code.
fn prose(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    let is_in_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let hashes =
        rest.strip_prefix('r').map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
    if !is_in_name
        && rest.starts_with('r')
        && rest.get(hashes.saturating_add(1)..).is_some_and(|r| r.starts_with('"'))
    {
        let end = format!("\"{}", "#".repeat(hashes));
        let start = hashes.saturating_add(2);
        let length =
            rest.get(start..).and_then(|inside| inside.find(&end)).map(|at| start + at + end.len());
        return length.unwrap_or(rest.len());
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    if rest.starts_with('\'') { character(rest) } else { 0 }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(here) = rest.get(at..) {
        if here.starts_with("/*") {
            depth = depth.saturating_add(1);
            at += 2;
        } else if here.starts_with("*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            match here.chars().next() {
                Some(c) => at += c.len_utf8(),
                None => return at,
            }
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if !is_escaped && c == quote {
            return at + c.len_utf8();
        }
        is_escaped = !is_escaped && c == '\\';
    }
    rest.len()
}

/// The length of a character literal at the start of `rest`, or 0. A lifetime has no closing quote.
fn character(rest: &str) -> usize {
    let mut inside = rest.chars().skip(1);
    match (inside.next(), inside.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, '\''),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let text = "a(\"unsafe \\\" x\"); // unsafe\nb('\"', 'x', r#\"un\"safe\"#) /* unsafe /* x */\n unsafe */ fn c<'a>(d: &'a str)\n";
        let code = code(text);
        assert!(!code.contains("unsafe") && !code.contains("safe"), "{code}");
        assert!(code.contains("fn c<'a>(d: &'a str)"), "{code}");
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn only_whole_words_are_found() {
        assert!(has_word("unsafe { x }", "unsafe"));
        assert!(has_word("pub unsafe fn", "unsafe"));
        assert!(!has_word("#![forbid(unsafe_code)]", "unsafe"));
        assert!(has_word("a::Instant::now()", "Instant::now"));
    }
}
