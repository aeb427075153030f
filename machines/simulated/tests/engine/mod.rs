//! The engine's promises, kept by a machine with as many cores as the crate that includes this says.

pub(crate) mod room;

mod administrators;
mod certificates;
mod conversations;
mod cores;
mod crowds;
mod disk_trouble;
mod downloads;
mod durable;
mod exports;
mod held_files;
mod holding;
mod hostile;
mod idle;
mod ipv6;
mod kept_files;
mod letters;
mod logins;
mod marks;
mod narrow;
mod news;
mod records;
mod rows;
mod scram;
mod settings;
mod starttls;
mod stopped;
mod submission;
mod tls;
mod two;
mod uploads;
mod vanishing;
mod waiting;
mod web;
mod webmail;
mod windows;
