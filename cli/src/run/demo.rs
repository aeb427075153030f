//! The configuration of the first run: a mail domain that does not exist on the Internet, and two
//! users with random passwords for this folder.
//!
//! Invariant: no password is in the source, so a reader of the source cannot log in to a machine.

use configuration::{Configuration, Password};
use host::Failure;
use rsa::Generate;

const TEXT: &str = include_str!("demo/barepost.toml");
/// The placeholders in the configuration that the users' passwords replace, in the order of the
/// users.
const PLACES: [&str; 2] = ["PASSWORD-OF-ADA", "PASSWORD-OF-GRACE"];

/// Characters that form no words and are not confused with each other.
const CHARACTERS: &[u8; 20] = b"bcdfghjkmnpqrstvwxyz";
const GROUPS: usize = 4;
const GROUP_LETTERS: usize = 4;
const _: () = assert!(
    20_u128.pow((GROUPS * GROUP_LETTERS) as u32) > 1 << 64,
    "a password has 64 bits at least"
);

/// The text of a new configuration.
pub(super) fn make() -> Result<String, Failure> {
    let mut text = TEXT.to_string();
    for place in PLACES {
        text = text.replacen(place, &password()?, 1);
    }
    Ok(text)
}

/// The users and their passwords as text for people. `None` if the configuration has changed since
/// its creation.
pub(super) fn users(text: &str, configuration: &Configuration) -> Option<String> {
    let mut made = TEXT.to_string();
    let mut said = Vec::new();
    for (place, user) in PLACES.iter().zip(&configuration.users) {
        let Password::Plain(password) = &user.password else { return None };
        made = made.replacen(place, password, 1);
        said.push(format!("{}, password {password}", user.address));
    }
    (made == text).then(|| said.join("; "))
}

/// A random password: groups of characters that a person can type.
fn password() -> Result<String, Failure> {
    let mut password = String::new();
    for group in 0..GROUPS {
        if group > 0 {
            password.push('-');
        }
        for _ in 0..GROUP_LETTERS {
            password.push(character()?);
        }
    }
    Ok(password)
}

/// A random character; each is equally likely.
fn character() -> Result<char, Failure> {
    loop {
        let [byte] = <[u8; 1]>::try_generate()
            .map_err(|error| Failure::broke(format_args!("chance: {error}")))?;
        let limit = u8::MAX / CHARACTERS.len() as u8 * CHARACTERS.len() as u8;
        let chosen = CHARACTERS.get(usize::from(byte) % CHARACTERS.len());
        if let (true, Some(character)) = (byte < limit, chosen) {
            return Ok(char::from(*character));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_serves_clients_of_forwarded_ports() {
        let configuration = Configuration::parse(&make().unwrap()).unwrap();
        assert_eq!(configuration.users.len(), PLACES.len());
        assert!(configuration.access.allows_plaintext_auth([10, 0, 2, 2].into()));
        assert!(configuration.access.is_unthrottled([10, 0, 2, 2].into()));
    }

    #[test]
    fn demo_passwords_differ_between_folders() {
        let passwords = || -> Vec<String> {
            let users = Configuration::parse(&make().unwrap()).unwrap().users;
            let plain = users.into_iter().map(|user| match user.password {
                Password::Plain(password) => password,
                Password::Argon2id(_) => panic!("a hash does not reveal the password"),
            });
            plain.collect()
        };
        let mut all: Vec<String> = (0..50).flat_map(|_| passwords()).collect();
        for password in &all {
            assert_eq!(
                password.split('-').map(str::len).collect::<Vec<_>>(),
                [GROUP_LETTERS; GROUPS],
                "{password}"
            );
            assert!(
                password.bytes().all(|byte| byte == b'-' || CHARACTERS.contains(&byte)),
                "{password}"
            );
        }
        let seen = all.concat();
        assert!(
            CHARACTERS.iter().all(|character| seen.contains(char::from(*character))),
            "each character is used"
        );
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
    }

    #[test]
    fn demo_users_are_shown_until_the_configuration_changes() {
        let text = make().unwrap();
        let said = |text: &str| users(text, &Configuration::parse(text).unwrap());
        let users = said(&text).unwrap();
        assert!(
            users.starts_with("ada@barepost.test, password ") && users.contains("; grace@"),
            "{users}"
        );
        let password = users.split([' ', ';']).nth(2).unwrap();
        assert!(text.contains(password));
        assert_eq!(said(&text.replace("[web]", "[web] ")), None);
        assert_eq!(said("hostname = 'mail.a.test'\ndomains = ['a.test']\n"), None);
    }
}
