//! A short description of a browser, from its `User-Agent`.

use alloc::format;
use alloc::string::String;

/// The longest description of an unknown program, in bytes.
const UNKNOWN_BYTES_MAX: usize = 40;

/// The tokens of browsers in `User-Agent`, and their usual names. The order matters, since many
/// browsers also send the tokens of others.
const PROGRAMS: [(&str, &str); 8] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Version/", "Safari"),
];

/// The tokens of operating systems in `User-Agent`, and their usual names.
const SYSTEMS: [(&str, &str); 7] = [
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

/// The description for a `User-Agent` value (RFC 9110 section 10.1.5).
pub(crate) fn in_words(user_agent: &str) -> String {
    let program = PROGRAMS.iter().find_map(|(token, name)| {
        let (_, version) = user_agent.split_once(token)?;
        let major = version.get(
            ..version.find(|character: char| !character.is_ascii_digit()).unwrap_or(version.len()),
        )?;
        (1..=4).contains(&major.len()).then(|| format!("{name} {major}"))
    });
    let system =
        SYSTEMS.iter().find(|(token, _)| user_agent.contains(token)).map(|(_, name)| *name);
    match (program, system) {
        (Some(program), Some(system)) => format!("{program} on {system}"),
        (Some(program), None) => program,
        (None, _) => {
            let token: String =
                user_agent.chars().filter(|character| !character.is_control()).collect();
            match token.get(..token.floor_char_boundary(UNKNOWN_BYTES_MAX)) {
                Some("") | None => "Unknown browser".into(),
                Some(token) => token.into(),
            }
        }
    }
}
