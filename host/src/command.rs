//! How the programs behind the script `barepost` start and end.

use crate::failure::Failure;
use crate::hold;
use crate::house::House;
use crate::stop::Stop;
use crate::terminal::remark;

/// Reads the command line of this process and runs it. Does not return when the command fails.
///
/// `read`: ends the process if the command line is wrong, as clap's `parse` does.
pub fn main<C>(read: fn() -> C, obey: impl FnOnce(C, &House, &Stop) -> Result<(), Failure>) {
    hold::become_held_program();
    let command_line = read();
    let obeyed =
        House::find().and_then(|house| obey(command_line, &house, &Stop::watch_signals()?));
    if let Err(failure) = obeyed {
        if !matches!(failure, Failure::Told) {
            remark(format_args!("barepost: {failure}"));
        }
        std::process::exit(failure.status());
    }
}
