//! TCP options: parses them from scripts and from the wire, and writes them to both.

use std::fmt;

use super::lexer::ScriptToken;
use super::parser::TokenStream;
use super::script::{SyntaxError, TcpOption};

impl TokenStream {
    /// Parses options after their `<`; `None` for `...`, which allows any options.
    pub(super) fn tcp_options(&mut self) -> Result<Option<Vec<TcpOption>>, SyntaxError> {
        if self.peek() == Some(&ScriptToken::Ellipsis) {
            self.next();
            self.symbol('>')?;
            return Ok(None);
        }
        let mut options = Vec::new();
        while !self.take_symbol('>') {
            if !options.is_empty() {
                self.symbol(',')?;
            }
            self.tcp_option(&mut options)?;
        }
        Ok(Some(options))
    }

    fn tcp_option(&mut self, options: &mut Vec<TcpOption>) -> Result<(), SyntaxError> {
        let line = self.line();
        let name = match self.next() {
            Some(ScriptToken::Word(name)) => name,
            Some(ScriptToken::Integer(digits)) => digits.to_string(),
            Some(ScriptToken::Hex(value)) => format!("0x{value:x}"),
            _ => return Err(SyntaxError::new(line, "a TCP option", "something else")),
        };
        options.push(match name.as_str() {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::End,
            "mss" => TcpOption::Mss(self.number("16 bits")?),
            "wscale" => TcpOption::WindowScale(self.number("8 bits")?),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => TcpOption::Sack(self.blocks()?),
            "TS" => self.timestamp()?,
            "md5" => self.other(19, &[], "md5")?,
            "FO" => self.other(34, &[], "FO")?,
            "FOEXP" | "exp-FO" | "EXP-FO" => self.other(254, &[0xf9, 0x89], "FOEXP")?,
            "AccECN0" => self.counters(172, &[], &name)?,
            "AccECN1" => self.counters(174, &[], &name)?,
            "exp-AccECN0" => self.counters(254, &[0xac, 0xc0], &name)?,
            "exp-AccECN1" => self.counters(254, &[0xac, 0xc1], &name)?,
            "ECN" => self.counters(172, &[], "ECN")?,
            "exp-tarr" => self.other(254, &[0x00, 0xac], "exp-tarr")?,
            other => match (other.strip_prefix("gen-"), other.strip_prefix("exp-")) {
                (Some(kind), _) => {
                    let kind = kind
                        .parse()
                        .map_err(|_| SyntaxError::new(line, "a kind below 256", kind))?;
                    self.other(kind, &[], other)?
                }
                (_, Some(identifier)) => {
                    let identifier = u16::from_str_radix(identifier, 16);
                    let identifier = identifier
                        .map_err(|_| SyntaxError::new(line, "an identifier of 16 bits", other))?;
                    self.other(254, &identifier.to_be_bytes(), other)?
                }
                _ => return self.raw(line, other, options),
            },
        });
        Ok(())
    }

    /// Parses hexadecimal digits that give all options at once.
    fn raw(
        &mut self,
        line: usize,
        digits: &str,
        options: &mut Vec<TcpOption>,
    ) -> Result<(), SyntaxError> {
        let digits = digits.trim_start_matches("0x");
        let bytes =
            bytes_of(digits).ok_or_else(|| SyntaxError::new(line, "a TCP option", digits))?;
        options.extend(read(&bytes));
        Ok(())
    }

    fn blocks(&mut self) -> Result<Vec<(u32, u32)>, SyntaxError> {
        let mut blocks = Vec::new();
        while matches!(self.peek(), Some(ScriptToken::Integer(_))) {
            let left = self.number("32 bits")?;
            self.symbol(':')?;
            blocks.push((left, self.number("32 bits")?));
        }
        Ok(blocks)
    }

    fn timestamp(&mut self) -> Result<TcpOption, SyntaxError> {
        if !self.take_word("val") {
            return self.expected("`val`");
        }
        let value = if self.peek() == Some(&ScriptToken::Ellipsis) {
            self.next();
            None
        } else {
            Some(self.number("32 bits")?)
        };
        if !self.take_word("ecr") {
            return self.expected("`ecr`");
        }
        let echo = self.number("32 bits")?;
        Ok(TcpOption::Timestamp { value, echo, absolute: self.take_symbol('!') })
    }

    /// Parses the data of an option, which is hexadecimal digits.
    fn other(&mut self, kind: u8, begin: &[u8], name: &str) -> Result<TcpOption, SyntaxError> {
        let line = self.line();
        let digits = match self.peek() {
            Some(ScriptToken::Word(word)) if word != "valid" => word.clone(),
            Some(ScriptToken::Word(_)) => {
                self.next();
                return Ok(TcpOption::Other { kind, data: vec![0; 16], name: name.to_string() });
            }
            // The lexer has read the digits as a number, without leading zeros. A zero is added for
            // an odd number of digits.
            Some(ScriptToken::Integer(value)) => in_pairs(value.to_string()),
            Some(ScriptToken::Hex(value)) => in_pairs(format!("{value:x}")),
            _ => String::new(),
        };
        if !digits.is_empty() {
            self.next();
        }
        let bytes = bytes_of(&digits)
            .ok_or_else(|| SyntaxError::new(line, "hexadecimal digits in pairs", &digits))?;
        Ok(TcpOption::Other { kind, data: [begin, &bytes].concat(), name: name.to_string() })
    }

    /// Parses the counters of accurate ECN, three bytes each, in the script's order.
    fn counters(&mut self, kind: u8, begin: &[u8], name: &str) -> Result<TcpOption, SyntaxError> {
        let mut data = begin.to_vec();
        let mut kind = kind;
        while let Some(ScriptToken::Word(word)) = self.peek() {
            if word == "e1b" && data.is_empty() {
                kind = 174;
            }
            self.next();
            let [_, rest @ ..] = self.number::<u32>("24 bits")?.to_be_bytes();
            data.extend_from_slice(&rest);
        }
        Ok(TcpOption::Other { kind, data, name: name.to_string() })
    }
}

fn in_pairs(digits: String) -> String {
    if digits.len().is_multiple_of(2) { digits } else { format!("0{digits}") }
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok())
        .collect()
}

/// The options as bytes of a header, padded to a multiple of four.
pub(super) fn bytes(options: &[TcpOption]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        match option {
            TcpOption::Nop => bytes.push(1),
            TcpOption::End => bytes.push(0),
            TcpOption::Mss(mss) => put_option(&mut bytes, 2, &mss.to_be_bytes()),
            TcpOption::WindowScale(shift) => put_option(&mut bytes, 3, &[*shift]),
            TcpOption::SackPermitted => put_option(&mut bytes, 4, &[]),
            TcpOption::Sack(blocks) => {
                let edges = blocks
                    .iter()
                    .flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()]);
                put_option(&mut bytes, 5, &edges.flatten().collect::<Vec<u8>>());
            }
            TcpOption::Timestamp { value, echo, .. } => {
                put_option(
                    &mut bytes,
                    8,
                    &[value.unwrap_or(0).to_be_bytes(), echo.to_be_bytes()].concat(),
                );
            }
            TcpOption::Other { kind, data, .. } => put_option(&mut bytes, *kind, data),
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn put_option(bytes: &mut Vec<u8>, kind: u8, data: &[u8]) {
    bytes.extend_from_slice(&[kind, u8::try_from(data.len() + 2).unwrap_or(u8::MAX)]);
    bytes.extend_from_slice(data);
}

/// Parses the options in a header. A malformed option gets all remaining bytes as its data.
pub(super) fn read(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut options = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        if *kind < 2 {
            options.push(if *kind == 0 { TcpOption::End } else { TcpOption::Nop });
            bytes = rest;
            continue;
        }
        let length = rest.first().map_or(0, |length| usize::from(*length));
        let (data, behind) = match bytes.split_at_checked(length) {
            Some((whole, behind)) if length >= 2 => (whole.get(2..).unwrap_or_default(), behind),
            _ => (rest, &[] as &[u8]),
        };
        options.push(option_of(*kind, data));
        bytes = behind;
    }
    options
}

fn option_of(kind: u8, data: &[u8]) -> TcpOption {
    let word = |at: usize| {
        data.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_be_bytes(*bytes))
    };
    match (kind, data, word(0), word(4)) {
        (2, [high, low], ..) => TcpOption::Mss(u16::from_be_bytes([*high, *low])),
        (3, [shift], ..) => TcpOption::WindowScale(*shift),
        (4, [], ..) => TcpOption::SackPermitted,
        (5, ..) if data.len().is_multiple_of(8) => {
            let edges = (0..data.len() / 8)
                .filter_map(|block| Some((word(8 * block)?, word(8 * block + 4)?)));
            TcpOption::Sack(edges.collect())
        }
        (8, _, Some(value), Some(echo)) if data.len() == 8 => {
            TcpOption::Timestamp { value: Some(value), echo, absolute: false }
        }
        _ => TcpOption::Other { kind, data: data.to_vec(), name: format!("gen-{kind}") },
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Nop => out.write_str("nop"),
            TcpOption::End => out.write_str("eol"),
            TcpOption::Mss(mss) => write!(out, "mss {mss}"),
            TcpOption::WindowScale(shift) => write!(out, "wscale {shift}"),
            TcpOption::SackPermitted => out.write_str("sackOK"),
            TcpOption::Sack(blocks) => {
                out.write_str("sack")?;
                blocks.iter().try_for_each(|(left, right)| write!(out, " {left}:{right}"))
            }
            TcpOption::Timestamp { value: Some(value), echo, .. } => {
                write!(out, "TS val {value} ecr {echo}")
            }
            TcpOption::Timestamp { value: None, echo, .. } => write!(out, "TS val ... ecr {echo}"),
            TcpOption::Other { data, name, .. } => {
                write!(out, "{name} ")?;
                data.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
        }
    }
}
