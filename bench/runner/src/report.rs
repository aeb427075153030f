//! The report of a bench: a table for people and a file for programs.

use std::process::Command;

use host::{Failure, Repository, say};
use serde::Serialize;

use super::plot::Figure;

/// The contents of `bench/results/NAME.json`, except for its name and commit.
pub(super) struct Report {
    /// The machine of the measurement.
    pub(super) machine: String,
    pub(super) rows: Vec<Row>,
    /// A note of a sentence or two for the reader of the table.
    pub(super) note: &'static str,
    /// The figure, if there is one.
    pub(super) figure: Option<Figure>,
}

/// One measurement.
#[derive(Serialize)]
pub(super) struct Row {
    case: String,
    unit: &'static str,
    ours: f64,
    peer_name: Option<&'static str>,
    peer: Option<f64>,
    /// The ratio to the peer. Above 1: ours is better.
    ratio: Option<f64>,
    /// The ratio to reach.
    target: Option<f64>,
}

impl Row {
    /// A measurement without a comparison.
    pub(super) fn alone(case: impl Into<String>, unit: &'static str, ours: f64) -> Row {
        Row {
            case: case.into(),
            unit,
            ours: rounded(ours),
            peer_name: None,
            peer: None,
            ratio: None,
            target: None,
        }
    }

    /// Compares a measurement where higher is better with a peer's. `target`: the multiple of the
    /// peer's value that ours must reach.
    pub(super) fn ahead_of(
        mut self,
        peer_name: &'static str,
        peer: f64,
        target: Option<f64>,
    ) -> Row {
        self.peer_name = Some(peer_name);
        self.peer = Some(rounded(peer));
        self.ratio = ratio(self.ours, peer);
        self.target = target;
        self
    }

    /// Compares a measurement where lower is better with a peer's. `aim`: the highest value that
    /// ours may have.
    pub(super) fn beside(mut self, peer_name: &'static str, peer: f64, aim: Option<f64>) -> Row {
        self.peer_name = Some(peer_name);
        self.peer = Some(rounded(peer));
        self.ratio = ratio(peer, self.ours);
        self.target = aim.and_then(|aim| ratio(peer, aim));
        self
    }
}

impl Report {
    pub(super) fn table(&self) -> String {
        let mut table = format!(
            "{}\n\n| case | unit | ours | peer | its figure | ratio | target |\n",
            self.machine
        );
        table.push_str("|---|---|---:|---|---:|---:|---:|\n");
        for row in &self.rows {
            let cells = [row.peer, row.ratio, row.target]
                .map(|cell| cell.map(readable).unwrap_or_default());
            let [peer, ratio, target] = cells;
            let peer_name = row.peer_name.unwrap_or_default();
            let ours = readable(row.ours);
            table.push_str(&format!(
                "| {} | {} | {ours} | {peer_name} | {peer} | {ratio} | {target} |\n",
                row.case, row.unit
            ));
        }
        table.push('\n');
        table.push_str(self.note);
        table
    }

    pub(super) fn write(&self, repository: &Repository, name: &str) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct File<'a> {
            name: &'a str,
            commit: String,
            machine: &'a str,
            rows: &'a [Row],
        }
        let path = repository.path("bench/results").join(name).with_extension("json");
        let doing = format!("writing {}", path.display());
        let file =
            File { name, commit: commit(repository), machine: &self.machine, rows: &self.rows };
        let mut text = serde_json::to_string_pretty(&file)
            .map_err(|error| Failure::broke(format_args!("{doing}: {error}")))?;
        text.push('\n');
        std::fs::create_dir_all(repository.path("bench/results")).map_err(Failure::io(&doing))?;
        std::fs::write(&path, text).map_err(Failure::io(&doing))?;
        say(format_args!("\nwritten to bench/results/{name}.json"));
        Ok(())
    }
}

/// The commit that was measured, with a `+` when the sources differ from it.
fn commit(repository: &Repository) -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).current_dir(repository.root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let changed = git(&["status", "--porcelain", "--", ".", ":!bench/results", ":!docs/figures"])
        .unwrap_or_default();
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into());
    if changed.is_empty() { commit } else { format!("{commit}+") }
}

/// None if the divisor is zero.
fn ratio(more: f64, less: f64) -> Option<f64> {
    Some(rounded(more / less)).filter(|ratio| ratio.is_finite())
}

/// Rounds to four significant digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let magnitude = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * magnitude).round() / magnitude
}

/// A number with thousands separators.
fn readable(value: f64) -> String {
    if value.abs() < 1000.0 {
        return format!("{value}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_report_are_rounded_and_grouped() {
        assert_eq!(readable(rounded(28_713.4)), "28,710");
        assert_eq!(readable(rounded(1_234_567.0)), "1,235,000");
        assert_eq!(readable(rounded(0.123_456)), "0.1235");
        assert_eq!(readable(999.0), "999");
        assert_eq!(rounded(0.0), 0.0);
    }

    #[test]
    fn a_ratio_above_one_is_better() {
        let row = Row::alone("a message", "instructions", 30_000.0).beside(
            "a peer",
            3_000_000.0,
            Some(60_000.0),
        );
        assert_eq!((row.ratio, row.target), (Some(100.0), Some(50.0)));
        let worse = Row::alone("a message", "instructions", 6.0).beside("a peer", 3.0, None);
        assert_eq!((worse.ratio, worse.target), (Some(0.5), None));
        let more = Row::alone("a flow", "Mbit/s", 180.0).ahead_of("a peer", 200.0, Some(0.9));
        assert_eq!((more.ratio, more.target), (Some(0.9), Some(0.9)));
    }

    #[test]
    fn the_file_has_the_agreed_shape() {
        let row = serde_json::to_value(Row::alone("boot", "ms", 5.0)).unwrap();
        let expected = serde_json::json!({
            "case": "boot", "unit": "ms", "ours": 5.0, "peer_name": null, "peer": null, "ratio": null, "target": null
        });
        assert_eq!(row, expected);
    }
}
