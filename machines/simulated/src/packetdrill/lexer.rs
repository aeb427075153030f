//! Splits the text of a script into tokens, each with its line, and handles `#` lines and defines.
//!
//! The tokens of the language overlap. `1:1001(1000)` is not an IPv6 address, `.5` is an ACK with a
//! count, and `0...0.1` is two times with an ellipsis between them. So each token is the longest
//! one that can begin where the previous one ended.

use std::collections::HashMap;
use std::net::IpAddr;

use super::script::SyntaxError;

/// One token of a script.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ScriptToken {
    /// A name, or another word that begins like a name.
    Word(String),
    /// A decimal number.
    Integer(i64),
    /// A number written with `0x`.
    Hex(i64),
    /// A number with a decimal point, as written.
    Float(String),
    /// A string without its quotes.
    Text(String),
    /// The text between backticks.
    Command(String),
    /// The text between `%{` and `}%`.
    Code(String),
    /// An IP address.
    Address(IpAddr),
    /// The name after `--`.
    Option(String),
    /// `...`
    Ellipsis,
    /// Any other character.
    Symbol(char),
    /// `#ifdef`, or `#ifndef` when the flag is set.
    If(String, bool),
    /// `#else`
    Else,
    /// `#endif`
    EndIf,
    /// `#define`
    Define(String, String),
}

/// A token and the line on which it begins, counted from 1.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Lexeme {
    pub(super) token: ScriptToken,
    pub(super) line: usize,
}

/// Splits `text` into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Lexeme>, SyntaxError> {
    let mut lexer = Lexer { rest: text, line: 1, at_line_start: true };
    let mut all = Vec::new();
    while let Some(lexeme) = lexer.next()? {
        all.push(lexeme);
    }
    Ok(all)
}

/// Substitutes defines, and applies `#ifdef`, `#ifndef` and `#else`.
pub(super) fn resolve(
    tokens: Vec<Lexeme>,
    defines: &mut HashMap<String, String>,
) -> Result<Vec<Lexeme>, SyntaxError> {
    let mut skipping: Vec<bool> = Vec::new();
    let mut resolved = Vec::new();
    for Lexeme { token, line } in tokens {
        match token {
            ScriptToken::If(name, inverted) => {
                skipping.push(defines.contains_key(&name) == inverted)
            }
            ScriptToken::Else => match skipping.last_mut() {
                Some(skips) => *skips = !*skips,
                None => return Err(SyntaxError::new(line, "#ifdef before #else", "none")),
            },
            ScriptToken::EndIf if skipping.pop().is_none() => {
                return Err(SyntaxError::new(line, "#ifdef before #endif", "none"));
            }
            ScriptToken::EndIf => {}
            _ if skipping.contains(&true) => {}
            ScriptToken::Define(name, value) => {
                defines.insert(name, value);
            }
            ScriptToken::Word(word) => match defines.get(&word) {
                Some(value) => {
                    resolved.extend(tokens_of(value, line)?);
                }
                None => resolved.push(Lexeme { token: ScriptToken::Word(word), line }),
            },
            token => resolved.push(Lexeme { token, line }),
        }
    }
    if skipping.is_empty() {
        Ok(resolved)
    } else {
        Err(SyntaxError::new(0, "#endif", "the end of the script"))
    }
}

fn tokens_of(value: &str, line: usize) -> Result<Vec<Lexeme>, SyntaxError> {
    let mut tokens = tokens(value)?;
    tokens.iter_mut().for_each(|lexeme| lexeme.line = line);
    Ok(tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    at_line_start: bool,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Result<Option<Lexeme>, SyntaxError> {
        self.skip_blank()?;
        let line = self.line;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let starts_line = std::mem::replace(&mut self.at_line_start, false);
        if first == '#' && starts_line {
            return match self.directive()? {
                Some(token) => Ok(Some(Lexeme { token, line })),
                None => self.next(),
            };
        }
        let token = match first {
            '"' => ScriptToken::Text(unescaped(self.quoted('"')?)),
            '`' => ScriptToken::Command(self.quoted('`')?.to_string()),
            '%' if self.rest.starts_with("%{") => ScriptToken::Code(self.code()?),
            '$' if self.rest.starts_with("${") => self.variable()?,
            _ => self.word()?,
        };
        Ok(Some(Lexeme { token, line }))
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line += taken.matches('\n').count();
        taken
    }

    fn skip_blank(&mut self) -> Result<(), SyntaxError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            if self.take(blank).contains('\n') {
                self.at_line_start = true;
            }
            if self.rest.starts_with("//") {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let line = self.line;
                let end = self
                    .rest
                    .find("*/")
                    .ok_or_else(|| SyntaxError::new(line, "`*/`", "the end of the script"))?;
                self.take(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    /// Parses a line that begins with `#`. The line is a comment if it is not a directive.
    fn directive(&mut self) -> Result<Option<ScriptToken>, SyntaxError> {
        let line = self.line;
        let text = self.take(self.rest.find('\n').unwrap_or(self.rest.len())).to_string();
        let mut words = text.trim_start_matches('#').split_whitespace();
        let directive = words.next().unwrap_or_default();
        let mut name = || {
            words
                .next()
                .map(str::to_string)
                .ok_or_else(|| SyntaxError::new(line, "a name", "the end of the line"))
        };
        Ok(match directive {
            "ifdef" => Some(ScriptToken::If(name()?, false)),
            "ifndef" => Some(ScriptToken::If(name()?, true)),
            "else" => Some(ScriptToken::Else),
            "endif" => Some(ScriptToken::EndIf),
            "define" => {
                let name = name()?;
                Some(ScriptToken::Define(name, words.collect::<Vec<_>>().join(" ")))
            }
            _ => None,
        })
    }

    fn quoted(&mut self, quote: char) -> Result<&'a str, SyntaxError> {
        let line = self.line;
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            if c == quote && !escaped {
                let whole = self.take(at + 1);
                return Ok(whole.get(1..at).unwrap_or_default());
            }
            escaped = c == '\\' && !escaped;
        }
        Err(SyntaxError::new(line, format!("a closing {quote}"), "the end of the script"))
    }

    fn code(&mut self) -> Result<String, SyntaxError> {
        let line = self.line;
        let end = self
            .rest
            .find("}%")
            .ok_or_else(|| SyntaxError::new(line, "`}%`", "the end of the script"))?;
        let whole = self.take(end + 2);
        Ok(whole.get(2..end).unwrap_or_default().trim().to_string())
    }

    fn variable(&mut self) -> Result<ScriptToken, SyntaxError> {
        let line = self.line;
        let end = self
            .rest
            .find('}')
            .ok_or_else(|| SyntaxError::new(line, "`}`", "the end of the script"))?;
        let whole = self.take(end + 1);
        Ok(ScriptToken::Word(whole.get(2..end).unwrap_or_default().to_string()))
    }

    /// Parses the longest token that needs no closing mark.
    fn word(&mut self) -> Result<ScriptToken, SyntaxError> {
        if self.rest.starts_with("...") {
            self.take(3);
            return Ok(ScriptToken::Ellipsis);
        }
        if let Some(name) = self.rest.strip_prefix("--") {
            let length = run_length(name, |c| c.is_ascii_alphanumeric() || c == '_');
            if length > 0 {
                return Ok(ScriptToken::Option(
                    self.take(length + 2).trim_start_matches('-').to_string(),
                ));
            }
        }
        if let Some(address) = self.address() {
            return Ok(ScriptToken::Address(address));
        }
        let word = self.name_length();
        let number = number_length(self.rest);
        if number > 0 && number >= word {
            return number_token(self.take(number), self.line);
        }
        if word > 0 {
            let line = self.line;
            let text = self.take(word);
            return match text
                .strip_prefix("0x")
                .and_then(|digits| i64::from_str_radix(digits, 16).ok())
            {
                Some(value) => Ok(ScriptToken::Hex(value)),
                None if text.starts_with("0x") => {
                    Err(SyntaxError::new(line, "a hexadecimal number", text))
                }
                None => Ok(ScriptToken::Word(text.to_string())),
            };
        }
        let first = self.rest.chars().next().unwrap_or(' ');
        self.take(first.len_utf8());
        Ok(ScriptToken::Symbol(first))
    }

    /// The length of the name at the start of `rest`. The names `exp-…`, `EXP-…`, `gen-…` and
    /// `sequence#` contain a hyphen or a `#`.
    fn name_length(&self) -> usize {
        let is_name_character = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = run_length(self.rest, is_name_character);
        let (head, tail) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        if let ("exp" | "EXP" | "gen", Some(more)) = (head, tail.strip_prefix('-')) {
            return length + 1 + run_length(more, is_name_character);
        }
        if head == "sequence" && tail.starts_with('#') { length + 1 } else { length }
    }

    fn address(&mut self) -> Option<IpAddr> {
        let length = run_length(self.rest, |c| c.is_ascii_hexdigit() || c == ':' || c == '.');
        let text = self.rest.get(..length)?;
        let looks_like_address = text.contains("::") || text.matches([':', '.']).count() >= 3;
        // The character after an address may look like a part of the address: `192.0.2.1:`.
        let text = if looks_like_address {
            text.strip_suffix(':').filter(|text| !text.ends_with(':')).unwrap_or(text)
        } else {
            ""
        };
        let address = text.parse().ok()?;
        self.take(text.len());
        Some(address)
    }
}

/// The length of the longest start of `text` in which `belongs` is true for all characters.
fn run_length(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// The length of the number at the start of `text`: an optional minus, and digits or a decimal
/// point with digits after it.
fn number_length(text: &str) -> usize {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - unsigned.len();
    let whole = run_length(unsigned, |c| c.is_ascii_digit());
    let fraction = match unsigned.get(whole..).and_then(|tail| tail.strip_prefix('.')) {
        Some(tail) => run_length(tail, |c| c.is_ascii_digit()),
        None => 0,
    };
    match (whole, fraction) {
        (0, 0) => 0,
        (whole, 0) => sign + whole,
        (whole, fraction) => sign + whole + 1 + fraction,
    }
}

fn number_token(text: &str, line: usize) -> Result<ScriptToken, SyntaxError> {
    if text.contains('.') {
        return Ok(ScriptToken::Float(text.to_string()));
    }
    // Such digits are not a number, but the data of an option, in hexadecimal.
    let is_blob = text.len() >= 4 && text.starts_with('0') || text.len() > 18;
    if is_blob && !text.starts_with('-') {
        return Ok(ScriptToken::Word(text.to_string()));
    }
    text.parse()
        .map(ScriptToken::Integer)
        .map_err(|_| SyntaxError::new(line, "a number of 64 bits", text))
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, c == '\\') {
            (_, true) => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some(other) => plain.push(other),
                None => {}
            },
            (c, false) => plain.push(c),
        }
    }
    plain
}
