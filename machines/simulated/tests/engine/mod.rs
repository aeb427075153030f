//! The engine's promises, kept by a machine with as many cores as the crate that includes this says.

pub(crate) mod room;

mod cores;
mod crowds;
mod disk_trouble;
mod idle;
mod ipv6;
mod letters;
mod logins;
mod starttls;
mod submission;
mod tls;
mod two;
mod vanishing;
mod waiting;
mod web;
