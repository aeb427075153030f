//! `barepost.toml`: any bytes.
//!
//! Oracles: an error names a line and a column that exist. An accepted configuration keeps the
//! invariants of a configuration.

use server::configuration::{Configuration, ConfigurationError};

/// Runs one input.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Configuration::parse(&text) {
        Ok(configuration) => check(&configuration),
        Err(error) => check_error(&text, &error),
    }
}

fn check(configuration: &Configuration) {
    assert!(!configuration.domains.is_empty(), "a server without domains");
    for domain in &configuration.domains {
        assert!(
            configuration.serves(domain.as_str())
                && configuration.serves(&domain.as_str().to_ascii_uppercase())
        );
        assert_eq!(
            configuration.domains.iter().filter(|other| *other == domain).count(),
            1,
            "a domain named twice"
        );
    }
    let mut names: Vec<String> = Vec::new();
    for user in &configuration.users {
        for address in std::iter::once(&user.address).chain(&user.aliases) {
            let text = address.to_string();
            let (local_part, domain) = text.rsplit_once('@').expect("an address has a domain");
            assert!(
                !local_part.is_empty() && configuration.serves(domain),
                "an address of a foreign domain: {text}"
            );
            assert!(
                !text.chars().any(char::is_control) && text.len() <= 254,
                "an address that no client can send"
            );
            names.push(text);
        }
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "an address that two accounts have");
    let postmaster = configuration.postmaster();
    let mut users = configuration.users.iter();
    assert!(
        configuration.users.is_empty() || users.any(|user| user.address.as_str() == postmaster),
        "the postmaster is an account"
    );
}

fn check_error(text: &str, error: &ConfigurationError) {
    let lines = text.split('\n').count();
    assert!((1..=lines).contains(&error.line), "line {} of {lines}: {error}", error.line);
    let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
    let columns = line.chars().count() + 1;
    assert!((1..=columns).contains(&error.column), "column {} of {columns}: {error}", error.column);
    assert!(
        !error.what.is_empty() && !error.expected.is_empty(),
        "an error says what is wrong and what is right"
    );
    assert!(
        !error.to_string().contains(char::is_control),
        "an error is one line for any terminal: {error}"
    );
}
