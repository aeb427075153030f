//! Parses tokens into a script: header lines, times, calls and their arguments. Packets have a
//! separate parser.

use std::collections::VecDeque;

use machine::Micros;

use super::lexer::{self, Lexeme, ScriptToken};
use super::script::{
    Event, Expression, HeaderLine, Script, ScriptAction, SocketCall, SyntaxError, When,
};

/// Parses a whole script.
pub(super) fn parse(text: &str) -> Result<Script, SyntaxError> {
    let mut script = Script::default();
    let mut words = TokenStream::new(lexer::tokens(text)?);
    while let Some(ScriptToken::Option(_)) = words.peek() {
        let option = words.header_line()?;
        if option.name == "define" {
            let (name, value) =
                option.value.as_deref().and_then(|value| value.split_once('=')).unwrap_or_default();
            script.defines.insert(name.to_string(), value.to_string());
        }
        script.options.push(option);
    }
    let rest = lexer::resolve(words.rest(), &mut script.defines)?;
    let mut words = TokenStream::new(rest);
    if let Some(ScriptToken::Command(_)) = words.peek() {
        let line = words.line();
        let action = words.action(None)?;
        script.events.push(Event { line, when: When::After(Micros(0)), action });
    }
    while words.peek().is_some() {
        script.events.push(words.event()?);
    }
    Ok(script)
}

/// The tokens that are not parsed yet.
pub(super) struct TokenStream {
    ahead: VecDeque<Lexeme>,
    line: usize,
}

impl TokenStream {
    fn new(lexemes: Vec<Lexeme>) -> TokenStream {
        TokenStream { ahead: lexemes.into(), line: 1 }
    }

    fn rest(self) -> Vec<Lexeme> {
        self.ahead.into()
    }

    pub(super) fn peek(&self) -> Option<&ScriptToken> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&ScriptToken> {
        self.ahead.get(ahead).map(|lexeme| &lexeme.token)
    }

    /// The line of the next token, or of the last token at the end of the script.
    pub(super) fn line(&self) -> usize {
        self.ahead.front().map_or(self.line, |lexeme| lexeme.line)
    }

    pub(super) fn next(&mut self) -> Option<ScriptToken> {
        let lexeme = self.ahead.pop_front()?;
        self.line = lexeme.line;
        Some(lexeme.token)
    }

    pub(super) fn expected<T>(&self, what: &str) -> Result<T, SyntaxError> {
        let seen = match self.peek() {
            Some(token) => written(token),
            None => "the end of the script".to_string(),
        };
        Err(SyntaxError::new(self.line(), what, seen))
    }

    pub(super) fn is_symbol(&self, symbol: char) -> bool {
        self.peek() == Some(&ScriptToken::Symbol(symbol))
    }

    /// Takes `symbol` if it is next.
    pub(super) fn take_symbol(&mut self, symbol: char) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn symbol(&mut self, symbol: char) -> Result<(), SyntaxError> {
        if self.take_symbol(symbol) { Ok(()) } else { self.expected(&format!("`{symbol}`")) }
    }

    /// Takes `word` if it is next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(ScriptToken::Word(next)) if next == word);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn name(&mut self) -> Result<String, SyntaxError> {
        match self.peek() {
            Some(ScriptToken::Word(word)) => {
                let word = word.clone();
                self.next();
                Ok(word)
            }
            _ => self.expected("a name"),
        }
    }

    pub(super) fn integer(&mut self) -> Result<i64, SyntaxError> {
        match self.peek() {
            Some(ScriptToken::Integer(value) | ScriptToken::Hex(value)) => {
                let value = *value;
                self.next();
                Ok(value)
            }
            _ => self.expected("a number"),
        }
    }

    /// Parses a number that fits the type `T`.
    pub(super) fn number<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, SyntaxError> {
        let line = self.line();
        let value = self.integer()?;
        T::try_from(value).map_err(|_| SyntaxError::new(line, what, value))
    }

    fn header_line(&mut self) -> Result<HeaderLine, SyntaxError> {
        let line = self.line();
        let Some(ScriptToken::Option(name)) = self.next() else {
            return self.expected("an option");
        };
        let mut value = None;
        if self.take_symbol('=') {
            let mut text = self.header_value()?;
            if self.take_symbol('=') {
                text = format!("{text}={}", self.header_value()?);
            }
            value = Some(text);
        }
        // In a list, for example of addresses, the rest of the line belongs to the value.
        while self.line() == line
            && matches!(self.peek(), Some(ScriptToken::Symbol(',' | '/' | ':')))
        {
            let mark = self.next().as_ref().map(written).unwrap_or_default();
            value = Some(format!("{}{mark}{}", value.unwrap_or_default(), self.header_value()?));
        }
        Ok(HeaderLine { line, name, value })
    }

    fn header_value(&mut self) -> Result<String, SyntaxError> {
        let value = match self.peek() {
            Some(ScriptToken::Text(text)) => format!("\"{text}\""),
            Some(
                ScriptToken::Word(_)
                | ScriptToken::Integer(_)
                | ScriptToken::Hex(_)
                | ScriptToken::Float(_)
                | ScriptToken::Address(_),
            ) => self.peek().map(written).unwrap_or_default(),
            Some(ScriptToken::Command(text)) => format!("`{text}`"),
            _ => return self.expected("a value"),
        };
        self.next();
        // `ipv4-mapped-ipv6` is one value, but several tokens.
        if value.starts_with("ipv4") && self.is_symbol('-') {
            self.next();
            return Ok(format!("{value}-{}", self.header_value()?));
        }
        Ok(value)
    }

    fn event(&mut self) -> Result<Event, SyntaxError> {
        if let Some(ScriptToken::Command(_)) = self.peek() {
            // The command after the last event has no time.
            let line = self.line();
            let action = self.action(None)?;
            return Ok(Event { line, when: When::After(Micros(0)), action });
        }
        let line = self.line();
        let when = self.when()?;
        let mut returns = None;
        if self.peek() == Some(&ScriptToken::Ellipsis) {
            self.next();
            returns = Some(self.time()?);
        }
        let action = self.action(returns)?;
        let is_expectation = matches!(action, ScriptAction::Outbound(_));
        if !is_expectation && !matches!(when, When::At(_) | When::After(_)) {
            return Err(SyntaxError::new(
                line,
                "a single time: only packets of ours may come in a range",
                "a range",
            ));
        }
        if returns.is_some() && !matches!(action, ScriptAction::SocketCall(_)) {
            return Err(SyntaxError::new(
                line,
                "a call behind the time at which it returns",
                "something else",
            ));
        }
        Ok(Event { line, when, action })
    }

    fn when(&mut self) -> Result<When, SyntaxError> {
        if self.take_symbol('*') {
            return Ok(When::Anytime);
        }
        let line = self.line();
        let is_relative = self.take_symbol('+');
        let start = self.time()?;
        if !self.take_symbol('~') {
            return Ok(if is_relative { When::After(start) } else { When::At(start) });
        }
        if is_relative {
            self.symbol('+')?;
        }
        let end = self.time()?;
        if end < start {
            return Err(SyntaxError::new(
                line,
                "a range that goes forward",
                format!("{start:?} to {end:?}"),
            ));
        }
        Ok(if is_relative { When::AfterBetween(start, end) } else { When::Between(start, end) })
    }

    fn time(&mut self) -> Result<Micros, SyntaxError> {
        let line = self.line();
        let text = match self.peek() {
            Some(ScriptToken::Float(text)) => text.clone(),
            Some(ScriptToken::Integer(value)) => value.to_string(),
            _ => return self.expected("a time in seconds"),
        };
        self.next();
        micros(&text).ok_or_else(|| SyntaxError::new(line, "a time in seconds", text))
    }

    fn action(&mut self, returns: Option<Micros>) -> Result<ScriptAction, SyntaxError> {
        match self.peek() {
            Some(ScriptToken::Symbol('<')) => self.packet().map(ScriptAction::Inbound),
            Some(ScriptToken::Symbol('>')) => self.packet().map(ScriptAction::Outbound),
            Some(ScriptToken::Word(_)) => self.call(returns).map(ScriptAction::SocketCall),
            Some(ScriptToken::Command(text)) => {
                let text = text.clone();
                self.next();
                Ok(ScriptAction::Command(text))
            }
            Some(ScriptToken::Code(text)) => {
                let text = text.clone();
                self.next();
                Ok(ScriptAction::Code(text))
            }
            _ => self.expected("a packet, a call, a command or code"),
        }
    }

    fn call(&mut self, returns: Option<Micros>) -> Result<SocketCall, SyntaxError> {
        let name = self.name()?;
        self.symbol('(')?;
        let arguments = self.list(')')?;
        self.symbol('=')?;
        let result = self.expression()?;
        let mut error = None;
        if let Some(ScriptToken::Word(word)) = self.peek() {
            error = Some(word.clone());
            self.next();
        }
        if self.take_symbol('(') {
            // The description of the error or of the result has no effect.
            while !self.take_symbol(')') {
                if self.next().is_none() {
                    return self.expected("`)`");
                }
            }
        }
        Ok(SocketCall { name, arguments, result, error, returns })
    }

    /// Parses expressions up to and including `end`.
    fn list(&mut self, end: char) -> Result<Vec<Expression>, SyntaxError> {
        let mut list = Vec::new();
        while !self.take_symbol(end) {
            if !list.is_empty() {
                self.symbol(',')?;
                if self.take_symbol(end) {
                    break;
                }
            }
            list.push(self.expression()?);
        }
        Ok(list)
    }

    pub(super) fn expression(&mut self) -> Result<Expression, SyntaxError> {
        let first = self.operand()?;
        if !self.is_symbol('|') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.take_symbol('|') {
            all.push(self.operand()?);
        }
        Ok(Expression::Either(all))
    }

    fn operand(&mut self) -> Result<Expression, SyntaxError> {
        let token = match self.peek() {
            Some(token) => token.clone(),
            None => return self.expected("an expression"),
        };
        match token {
            ScriptToken::Symbol('[' | '{' | '(')
            | ScriptToken::Ellipsis
            | ScriptToken::Integer(_)
            | ScriptToken::Hex(_)
            | ScriptToken::Float(_) => {
                self.next();
            }
            ScriptToken::Word(_) | ScriptToken::Text(_) | ScriptToken::Address(_) => {
                self.next();
            }
            _ => return self.expected("an expression"),
        }
        match token {
            ScriptToken::Ellipsis => Ok(Expression::Any),
            ScriptToken::Integer(value) | ScriptToken::Hex(value) => Ok(Expression::Integer(value)),
            ScriptToken::Symbol('[') => self.list(']').map(Expression::List),
            ScriptToken::Symbol('{') => self.list('}').map(Expression::Record),
            ScriptToken::Symbol(_) => self.list(')').map(Expression::List),
            ScriptToken::Word(word) => self.after_word(word),
            ScriptToken::Text(text) => Ok(self.after_text(text)),
            other => Ok(Expression::Text(written(&other))),
        }
    }

    /// Parses the rest of an expression that begins with a name. The name may have a value,
    /// arguments, both, or neither.
    fn after_word(&mut self, word: String) -> Result<Expression, SyntaxError> {
        if self.take_symbol('=') {
            return Ok(Expression::Named(word, Box::new(self.expression()?)));
        }
        if !self.take_symbol('(') {
            return Ok(Expression::Word(word));
        }
        let applied = Expression::Applied(word.clone(), self.list(')')?);
        if self.take_symbol('=') {
            Ok(Expression::Named(word, Box::new(self.expression()?)))
        } else {
            Ok(applied)
        }
    }

    /// Parses the rest of a string. Adjacent strings are one string. An ellipsis after them means
    /// that the text continues, and is dropped.
    fn after_text(&mut self, mut text: String) -> Expression {
        while let Some(ScriptToken::Text(more)) = self.peek() {
            text.push_str(more);
            self.next();
        }
        if self.peek() == Some(&ScriptToken::Ellipsis) {
            self.next();
        }
        Expression::Text(text)
    }
}

/// Parses seconds with a fraction. Fractions of a microsecond are dropped.
fn micros(text: &str) -> Option<Micros> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(6).collect();
    let fraction: u64 = digits.parse().ok()?;
    Some(Micros(whole.checked_mul(1_000_000)?.checked_add(fraction)?))
}

/// A token in a form in which a script may have written it.
pub(super) fn written(token: &ScriptToken) -> String {
    match token {
        ScriptToken::Word(text) | ScriptToken::Float(text) => text.clone(),
        ScriptToken::Integer(value) => value.to_string(),
        ScriptToken::Hex(value) => format!("{value:#x}"),
        ScriptToken::Text(text) => format!("\"{text}\""),
        ScriptToken::Command(text) => format!("`{text}`"),
        ScriptToken::Code(text) => format!("%{{ {text} }}%"),
        ScriptToken::Address(address) => address.to_string(),
        ScriptToken::Option(name) => format!("--{name}"),
        ScriptToken::Ellipsis => "...".to_string(),
        ScriptToken::Symbol(symbol) => symbol.to_string(),
        ScriptToken::If(name, false) => format!("#ifdef {name}"),
        ScriptToken::If(name, true) => format!("#ifndef {name}"),
        ScriptToken::Else => "#else".to_string(),
        ScriptToken::EndIf => "#endif".to_string(),
        ScriptToken::Define(name, value) => format!("#define {name} {value}"),
    }
}
