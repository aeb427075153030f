//! A serving machine: its output is shown until it ends. A request to stop is passed on to the
//! machine.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use host::{Failure, Stop, remark, say};

use crate::guest::{End, Event, Running};

/// The longest time in which the machine ends its sessions and writes its data to disk.
const STOP_BUDGET: Duration = Duration::from_secs(10);
/// The longest time from the start until the machine serves.
const READY_BUDGET: Duration = Duration::from_secs(120);
/// The number of panics before the machine first serves, at which it counts as failed. Later the
/// number is not limited, because the machine restarts.
const PANICS_MAX: u32 = 3;
/// The longest delay until a signal is noticed.
const PATIENCE: Duration = Duration::from_millis(20);

/// Shows the machine's output until it ends. On `stop` asks the machine to end.
///
/// `ready`: gets the time at which all services have greeted.
///
/// Errors: the failure of the machine. A stop on request is a success.
pub(super) fn serve(
    mut machine: impl Running,
    ready: &Receiver<Instant>,
    stop: &Stop,
) -> Result<(), Failure> {
    let (mut is_serving, mut is_ready) = (false, false);
    let mut panics = 0;
    let mut asked: Option<Instant> = None;
    let mut asked_again = Instant::now();
    loop {
        match machine.next_event(PATIENCE) {
            Some(Event::Line(line)) => {
                panics += u32::from(line.contains("] PANIC "));
                is_serving |= line.contains("] serving ");
                say(&line);
            }
            Some(Event::Complaint(line)) => remark(format_args!("qemu: {line}")),
            Some(Event::Ended) => break,
            None => {}
        }
        // With several cores, some may greet before the machine says that all of them do.
        if is_serving
            && !is_ready
            && let Ok(moment) = ready.try_recv()
        {
            is_ready = true;
            say(format_args!(
                "barepost: ready in {} ms",
                moment.duration_since(machine.started()).as_millis()
            ));
        }
        if !is_ready && panics >= PANICS_MAX {
            return Err(Failure::broke(
                "the machine panics before it is ready; see its console for the reason",
            ));
        }
        if !is_ready && asked.is_none() && machine.started().elapsed() > READY_BUDGET {
            return Err(Failure::broke(format_args!(
                "the machine is not ready after {} s; see its console for the reason",
                READY_BUDGET.as_secs()
            )));
        }
        if stop.is_requested() {
            let since = *asked.get_or_insert_with(Instant::now);
            // The request is repeated, because a booting machine may lose console input.
            if since.elapsed() < PATIENCE || asked_again.elapsed() > Duration::from_secs(1) {
                asked_again = Instant::now();
                machine.ask_to_stop();
            }
            if stop.is_urgent() || since.elapsed() > STOP_BUDGET {
                machine.kill();
            }
        }
    }
    verdict(machine.end()?, stop)
}

/// The result for the end of a machine. A stop counts from the user's request on, even if the
/// machine ends before it is asked to stop.
fn verdict(end: End, stop: &Stop) -> Result<(), Failure> {
    match (end, stop.is_requested()) {
        (End::Clean, true) => Ok(()),
        (End::Clean, false) => {
            Err(Failure::broke("the machine stopped by itself; see its console for the reason"))
        }
        (End::Other(_), true) => Err(Failure::broke(
            "the machine was killed before it had stopped; all acknowledged mail is on the disk",
        )),
        (End::Other(how), false) => {
            Err(Failure::broke(format_args!("the machine ended unexpectedly: {how}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_stop_does_not_report_a_lost_machine() {
        let interrupted = || End::Other("QEMU ended (signal: 2)".into());
        let asked = verdict(interrupted(), &Stop::requested()).unwrap_err().to_string();
        assert!(asked.contains("before it had stopped"), "{asked}");
        assert!(
            verdict(interrupted(), &Stop::default())
                .unwrap_err()
                .to_string()
                .contains("ended unexpectedly")
        );
        verdict(End::Clean, &Stop::requested()).unwrap();
        verdict(End::Clean, &Stop::default()).unwrap_err();
    }
}
