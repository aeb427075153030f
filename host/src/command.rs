//! How the programs behind the script `barepost` start and end.

use crate::failure::Failure;
use crate::hold;
use crate::repository::Repository;
use crate::stop::Stop;
use crate::terminal::remark;

/// Reads the command line of this process and runs it. Does not return when the command fails.
///
/// `read`: ends the process if the command line is wrong, as clap's `parse` does.
pub fn main<C>(read: fn() -> C, obey: impl FnOnce(C, &Repository, &Stop) -> Result<(), Failure>) {
    hold::become_held_program();
    let command_line = read();
    let obeyed = Repository::find()
        .and_then(|repository| obey(command_line, &repository, &Stop::watch_signals()?));
    if let Err(failure) = obeyed {
        if !matches!(failure, Failure::Told) {
            remark(format_args!("barepost: {failure}"));
        }
        std::process::exit(failure.status());
    }
}
