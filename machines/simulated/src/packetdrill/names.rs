//! The constants that scripts name, with the numbers of Linux. Other systems have other numbers for
//! some of them. That does not matter, because names are compared with names, and the numbers in
//! scripts are Linux's.

use super::script::Expression;

/// The value of a constant; `None` if it is unknown.
pub(super) fn constant(name: &str) -> Option<i64> {
    CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The value of an expression; `None` if it has no value, or an unknown one.
pub(super) fn value(expression: &Expression) -> Option<i64> {
    match expression {
        Expression::Integer(value) => Some(*value),
        Expression::Word(name) => constant(name),
        Expression::Either(all) => all.iter().try_fold(0, |bits, one| Some(bits | value(one)?)),
        Expression::Named(_, inner) => value(inner),
        Expression::Applied(name, arguments) if name.starts_with("hton") => {
            arguments.first().and_then(value)
        }
        Expression::List(all) => match all.as_slice() {
            [one] => value(one),
            _ => None,
        },
        _ => None,
    }
}

/// The names in an expression.
pub(super) fn names(expression: &Expression) -> Vec<&str> {
    match expression {
        Expression::Word(name) => vec![name],
        Expression::Either(all) | Expression::List(all) | Expression::Record(all) => {
            all.iter().flat_map(names).collect()
        }
        Expression::Named(_, inner) => names(inner),
        _ => Vec::new(),
    }
}

/// The value of the field with this name in a record or a list.
pub(super) fn field<'a>(expression: &'a Expression, name: &str) -> Option<&'a Expression> {
    match expression {
        Expression::Record(all) | Expression::List(all) => all.iter().find_map(|one| match one {
            Expression::Named(found, inner) if found == name => Some(inner.as_ref()),
            _ => None,
        }),
        _ => None,
    }
}

pub(super) const O_NONBLOCK: i64 = 0x800;
pub(super) const MSG_PEEK: i64 = 0x2;
pub(super) const MSG_TRUNC: i64 = 0x20;
pub(super) const MSG_DONTWAIT: i64 = 0x40;
pub(super) const MSG_WAITALL: i64 = 0x100;
pub(super) const POLLIN: i64 = 0x1;
pub(super) const POLLOUT: i64 = 0x4;
pub(super) const POLLERR: i64 = 0x8;
pub(super) const POLLHUP: i64 = 0x10;
pub(super) const POLLRDHUP: i64 = 0x2000;
pub(super) const EPOLLET: i64 = 1 << 31;
pub(super) const EPOLLONESHOT: i64 = 1 << 30;

const CONSTANTS: &[(&str, i64)] = &[
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", 2),
    ("O_NONBLOCK", O_NONBLOCK),
    ("SOCK_NONBLOCK", O_NONBLOCK),
    ("SOCK_CLOEXEC", 0x8_0000),
    ("SOCK_STREAM", 1),
    ("SOCK_DGRAM", 2),
    ("SOCK_RAW", 3),
    ("AF_INET", 2),
    ("AF_INET6", 10),
    ("IPPROTO_IP", 0),
    ("IPPROTO_TCP", 6),
    ("SOL_SOCKET", 1),
    ("SOL_IP", 0),
    ("SOL_TCP", 6),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("MSG_PEEK", MSG_PEEK),
    ("MSG_TRUNC", MSG_TRUNC),
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_EOR", 0x80),
    ("MSG_WAITALL", MSG_WAITALL),
    ("MSG_NOSIGNAL", 0x4000),
    ("POLLIN", POLLIN),
    ("POLLPRI", 2),
    ("POLLOUT", POLLOUT),
    ("POLLERR", POLLERR),
    ("POLLHUP", POLLHUP),
    ("POLLNVAL", 0x20),
    ("POLLRDNORM", 0x40),
    ("POLLRDBAND", 0x80),
    ("POLLWRNORM", 0x100),
    ("POLLWRBAND", 0x200),
    ("POLLRDHUP", POLLRDHUP),
    ("EPOLLIN", POLLIN),
    ("EPOLLPRI", 2),
    ("EPOLLOUT", POLLOUT),
    ("EPOLLERR", POLLERR),
    ("EPOLLHUP", POLLHUP),
    ("EPOLLRDNORM", 0x40),
    ("EPOLLRDBAND", 0x80),
    ("EPOLLWRNORM", 0x100),
    ("EPOLLWRBAND", 0x200),
    ("EPOLLRDHUP", POLLRDHUP),
    ("EPOLLET", EPOLLET),
    ("EPOLLONESHOT", EPOLLONESHOT),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
    ("NULL", 0),
];

/// Whether a word looks like the name of a define, for words that the language does not have.
pub(super) fn is_undefined(word: &str) -> bool {
    word.len() > 2
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        && word.starts_with(|c: char| c.is_ascii_uppercase())
}
