//! Parses packets as scripts write them, such as `> P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val
//! 100 ecr 200>`.

use super::lexer::ScriptToken;
use super::parser::TokenStream;
use super::script::{
    Ecn, Flags, Icmp, IpInfo, PacketBody, Quoted, ScriptPacket, SyntaxError, TcpPacket,
};

impl TokenStream {
    /// Parses a packet, from its `<` or `>` on.
    pub(super) fn packet(&mut self) -> Result<ScriptPacket, SyntaxError> {
        self.next();
        let wrapping = self.wrapping()?;
        let mut packet = ScriptPacket {
            ip: IpInfo::default(),
            wrapping,
            ports: None,
            body: PacketBody::Foreign("an empty packet"),
        };
        if self.is_symbol('(') || self.is_symbol('[') {
            packet.ip = self.ip_info()?;
        }
        if self.take_word("encap") {
            packet.wrapping = Some("PSP");
            while !matches!(
                self.peek(),
                Some(ScriptToken::Symbol('.' | '-') | ScriptToken::Float(_)) | None
            ) && !matches!(self.peek(), Some(ScriptToken::Word(word)) if is_flags(word))
            {
                self.next();
            }
        }
        if let Some(protocol) = self.foreign_protocol() {
            packet.body = PacketBody::Foreign(protocol);
            self.skip_event();
            return Ok(packet);
        }
        if self.take_word("udp") {
            packet.ports = self.ports()?;
            self.symbol('(')?;
            packet.body = PacketBody::Udp(self.number("a length that UDP can have")?);
            self.symbol(')')?;
            return Ok(packet);
        }
        if self.take_word("icmp") {
            packet.body = PacketBody::Icmp(self.icmp()?);
            return Ok(packet);
        }
        packet.ports = self.ports()?;
        if let Some(protocol) = self.foreign_protocol() {
            packet.body = PacketBody::Foreign(protocol);
            self.skip_event();
            return Ok(packet);
        }
        packet.body = PacketBody::Tcp(self.tcp()?);
        self.tcp_suffixes(&mut packet)?;
        Ok(packet)
    }

    /// Parses tunnel headers in front of the packet. Returns the name of the last tunnel.
    fn wrapping(&mut self) -> Result<Option<&'static str>, SyntaxError> {
        let mut wrapping = None;
        loop {
            let kind = match self.peek() {
                Some(ScriptToken::Word(word)) => word.as_str(),
                _ => return Ok(wrapping),
            };
            wrapping = Some(match kind {
                "ipv4" => "IPv4 in IP",
                "ipv6" => "IPv6 in IP",
                "gre" | "GREv0" => "GRE",
                "mpls" => "MPLS",
                _ => return Ok(wrapping),
            });
            // The header ends with a colon. The lexer has read each address in the header as one
            // token, so its colons do not count.
            loop {
                match self.next() {
                    Some(ScriptToken::Symbol(':')) => break,
                    Some(_) => {}
                    None => return self.expected("`:` behind the outer header"),
                }
            }
        }
    }

    fn foreign_protocol(&self) -> Option<&'static str> {
        match self.peek() {
            Some(ScriptToken::Word(word)) if word.starts_with("sctp") => Some("SCTP"),
            Some(ScriptToken::Word(word)) if word == "udplite" => Some("UDP-Lite"),
            _ => None,
        }
    }

    /// Skips the rest of an event in an unknown language, up to the first word of the next event.
    fn skip_event(&mut self) {
        let mut depth = 0_usize;
        let mut line = self.line();
        while let Some(token) = self.peek() {
            let begins_event = matches!(
                token,
                ScriptToken::Symbol('+' | '*')
                    | ScriptToken::Float(_)
                    | ScriptToken::Integer(_)
                    | ScriptToken::Command(_)
                    | ScriptToken::Code(_)
            );
            if self.line() > line && depth == 0 && begins_event {
                return;
            }
            line = self.line();
            match token {
                ScriptToken::Symbol('[' | '(' | '{') => depth = depth.saturating_add(1),
                ScriptToken::Symbol(']' | ')' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.next();
        }
    }

    fn ip_info(&mut self) -> Result<IpInfo, SyntaxError> {
        let end = if self.take_symbol('(') { ')' } else { ']' };
        if end == ']' {
            self.symbol('[')?;
        }
        let mut info = IpInfo::default();
        while !self.take_symbol(end) {
            self.take_symbol(',');
            let line = self.line();
            match self.name()?.as_str() {
                "noecn" => info.ecn = Some(Ecn::Is(0)),
                "ect1" => info.ecn = Some(Ecn::Is(1)),
                "ect0" => info.ecn = Some(Ecn::Is(2)),
                "ce" => info.ecn = Some(Ecn::Is(3)),
                "ect01" => info.ecn = Some(Ecn::Capable),
                "tos" | "class" => info.tos = Some(self.number("a byte")?),
                "ttl" | "hlim" => info.ttl = Some(self.number("a byte")?),
                "flowlabel" => info.flow_label = Some(self.number("20 bits")?),
                "dscp" => info.tos = Some(self.code_point()? << 2),
                "ecn" => {}
                other => return Err(SyntaxError::new(line, "a field of the IP header", other)),
            }
        }
        Ok(info)
    }

    fn code_point(&mut self) -> Result<u8, SyntaxError> {
        if !matches!(self.peek(), Some(ScriptToken::Word(_))) {
            return self.number("6 bits");
        }
        let line = self.line();
        let name = self.name()?;
        let digits: Vec<u8> =
            name.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        match (name.trim_end_matches(|c: char| c.is_ascii_digit()), digits.as_slice()) {
            ("cs", [class]) => Ok(class << 3),
            ("af", [class, drop]) => Ok(class << 3 | drop << 1),
            ("ef", []) => Ok(46),
            ("voice", []) => {
                self.take_symbol('-');
                self.take_word("admit");
                Ok(44)
            }
            ("le", []) => Ok(1),
            _ => Err(SyntaxError::new(line, "a code point", name)),
        }
    }

    fn ports(&mut self) -> Result<Option<(u16, u16)>, SyntaxError> {
        if !matches!(
            (self.peek(), self.peek_at(1)),
            (Some(ScriptToken::Integer(_)), Some(ScriptToken::Symbol('>')))
        ) {
            return Ok(None);
        }
        let source = self.number("a port")?;
        self.symbol('>')?;
        Ok(Some((source, self.number("a port")?)))
    }

    fn tcp(&mut self) -> Result<TcpPacket, SyntaxError> {
        let flags = self.flags()?;
        let mut tcp = TcpPacket {
            flags,
            sequence: None,
            absolute: false,
            payload: 0,
            acknowledgment: None,
            window: None,
            urgent: None,
            options: Some(Vec::new()),
        };
        self.sequence(&mut tcp)?;
        if self.take_word("ack") {
            tcp.acknowledgment = Some(self.number("an acknowledgment of 32 bits")?);
        } else if flags.has(Flags::ACK) {
            tcp.acknowledgment = Some(0);
        }
        if self.take_word("win") {
            tcp.window = Some(self.number("a window of 16 bits")?);
        }
        if self.take_word("urg") {
            tcp.urgent = Some(self.number("a pointer of 16 bits")?);
        }
        // A `<` after a segment can only begin its options: the next packet begins with a time.
        if self.take_symbol('<') {
            tcp.options = self.tcp_options()?;
        }
        Ok(tcp)
    }

    /// Parses the suffixes that some dialects add after a segment.
    fn tcp_suffixes(&mut self, packet: &mut ScriptPacket) -> Result<(), SyntaxError> {
        if self.is_symbol('[') {
            // The text in brackets is the reason for a reset.
            while !self.take_symbol(']') {
                if self.next().is_none() {
                    return self.expected("`]`");
                }
            }
        }
        if self.take_symbol('/') {
            packet.wrapping = Some("UDP");
            if !self.take_word("udp") {
                return self.expected("`udp`");
            }
            while !self.take_symbol(')') {
                if self.next().is_none() {
                    return self.expected("`)`");
                }
            }
        }
        Ok(())
    }

    /// Parses the flags: characters for flags, then `.` for ACK, then optionally the three bits of
    /// the accurate ECN counter.
    fn flags(&mut self) -> Result<Flags, SyntaxError> {
        let mut flags = Flags::default();
        if self.take_symbol('-') {
            return Ok(flags);
        }
        let mut any = false;
        if let Some(ScriptToken::Word(word)) = self.peek() {
            let word = word.clone();
            flags.bits |= self.flag_characters(&word)?;
            self.next();
            any = true;
        }
        match self.peek().cloned() {
            Some(ScriptToken::Symbol('.')) => {
                self.next();
                flags.bits |= Flags::ACK;
                if let Some(ScriptToken::Word(word)) = self.peek().cloned()
                    && is_flags(&word)
                {
                    flags.bits |= self.flag_characters(&word)?;
                    self.next();
                }
            }
            Some(ScriptToken::Float(text)) => {
                let count: u16 = match text.strip_prefix('.').and_then(|digits| digits.parse().ok())
                {
                    Some(count) if count < 8 => count,
                    _ => return self.expected("`.` and a count below 8"),
                };
                self.next();
                flags.bits |= Flags::ACK | count << 6;
            }
            _ if any => {}
            _ => return self.expected("the flags of a segment"),
        }
        Ok(flags)
    }

    fn flag_characters(&self, word: &str) -> Result<u16, SyntaxError> {
        word.chars().try_fold(0, |bits, flag| match flag {
            'F' => Ok(bits | Flags::FIN),
            'S' => Ok(bits | Flags::SYN),
            'R' => Ok(bits | Flags::RST),
            'P' => Ok(bits | Flags::PSH),
            'U' => Ok(bits | Flags::URG),
            'E' => Ok(bits | Flags::ECE),
            'W' | 'C' => Ok(bits | Flags::CWR),
            'A' => Ok(bits | Flags::AE),
            digit @ '0'..='7' => {
                Ok(bits | u16::try_from(digit.to_digit(8).unwrap_or(0)).unwrap_or(0) << 6)
            }
            _ => self.expected("the flags of a segment, out of F S R P U E W A and ."),
        })
    }

    fn sequence(&mut self, tcp: &mut TcpPacket) -> Result<(), SyntaxError> {
        let line = self.line();
        if self.peek() == Some(&ScriptToken::Ellipsis) {
            self.next();
            self.symbol('(')?;
            tcp.payload = self.number("a length")?;
            return self.symbol(')');
        }
        let (start, end, length) = self.range_of_bytes()?;
        if start.wrapping_add(length) != end {
            let what = format!("{start}:{}({length})", start.wrapping_add(length));
            return Err(SyntaxError::new(line, what, format!("{start}:{end}({length})")));
        }
        tcp.sequence = Some(start);
        tcp.payload = length;
        tcp.absolute = self.take_symbol('!');
        Ok(())
    }

    /// Parses a range such as `1:1001(1000)`: first number, number after the last one, and length.
    fn range_of_bytes(&mut self) -> Result<(u32, u32, u32), SyntaxError> {
        let start = self.number("a sequence number of 32 bits")?;
        self.symbol(':')?;
        let end = self.number("a sequence number of 32 bits")?;
        self.symbol('(')?;
        let length = u32::from(self.number::<u16>("a length of 16 bits")?);
        self.symbol(')')?;
        Ok((start, end, length))
    }

    fn icmp(&mut self) -> Result<Icmp, SyntaxError> {
        let kind = self.name()?;
        let mut icmp = Icmp { kind, code: None, mtu: None, identifier: None, quoted: None };
        if let Some(ScriptToken::Word(word)) = self.peek()
            && word != "mtu"
            && word != "id"
        {
            icmp.code = Some(word.clone());
            self.next();
        }
        if self.take_word("mtu") {
            icmp.mtu = Some(self.number("an MTU")?);
        }
        if self.take_word("id") {
            icmp.identifier = Some(self.number("an identifier of 16 bits")?);
        }
        if self.take_symbol('[') {
            icmp.quoted = Some(self.quoted()?);
            while !self.take_symbol(']') {
                if self.next().is_none() {
                    return self.expected("`]`");
                }
            }
        }
        Ok(icmp)
    }

    fn quoted(&mut self) -> Result<Quoted, SyntaxError> {
        match self.peek() {
            Some(ScriptToken::Word(word)) => Ok(Quoted::Other(match word.as_str() {
                "udp" => "UDP",
                "udplite" => "UDP-Lite",
                "raw" => "raw IP",
                "sctp" => "SCTP",
                _ => return self.expected("the packet that is quoted"),
            })),
            _ => {
                let (start, _, length) = self.range_of_bytes()?;
                Ok(Quoted::Tcp(start, length))
            }
        }
    }
}

fn is_flags(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|flag| "FSRPUEWCA01234567".contains(flag))
}
