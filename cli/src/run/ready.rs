//! Checks whether all services answer: connects to each and waits for its greeting.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::services::{Reached, Service};

/// The longest wait of one attempt for the greeting. QEMU's network accepts a connection at once,
/// and tries only once to connect to the guest. So while the machine boots, many short attempts
/// notice its start soonest. Later the attempts are longer, for a busy machine.
const ATTEMPT_WHILE_BOOTING: Duration = Duration::from_millis(100);
const ATTEMPT: Duration = Duration::from_secs(2);
/// The time after the start in which attempts are short: a boot takes no longer.
const BOOTING: Duration = Duration::from_secs(5);

/// Starts a thread that sends the time at which the last of `services` has greeted. It retries
/// without limit.
pub fn watch(services: Vec<(Service, SocketAddr)>) -> Receiver<Instant> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let started = Instant::now();
        for (service, address) in services {
            loop {
                let patience =
                    if started.elapsed() < BOOTING { ATTEMPT_WHILE_BOOTING } else { ATTEMPT };
                if greets(&service, address, patience) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        // The send fails if the machine has ended and the receiver was dropped.
        let _ = sender.send(Instant::now());
    });
    receiver
}

/// Whether the service at `address` sends the expected greeting. The session ends after it.
fn greets(service: &Service, address: SocketAddr, patience: Duration) -> bool {
    let greeting = || -> std::io::Result<bool> {
        let mut connection = TcpStream::connect_timeout(&address, patience)?;
        connection.set_read_timeout(Some(patience))?;
        connection.write_all(service.question())?;
        let mut start = [0; 3];
        connection.read_exact(&mut start)?;
        connection.write_all(service.farewell())?;
        Ok(start == service.greeting())
    };
    greeting().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::{POP3, SMTP};
    use std::net::TcpListener;

    #[test]
    fn service_is_ready_when_it_sends_the_expected_greeting() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let patience = Duration::from_millis(200);
        assert!(!greets(&SMTP, address, patience), "it accepts and sends no greeting");
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let _ = connection.unwrap().write_all(b"220 mail.a.test\r\n");
            }
        });
        assert!(greets(&SMTP, address, patience));
        assert!(!greets(&POP3, address, patience));
        assert!(watch(vec![(SMTP, address)]).recv_timeout(Duration::from_secs(5)).is_ok());
        let never = watch(vec![(SMTP, address), (POP3, address)]);
        assert!(never.recv_timeout(Duration::from_millis(300)).is_err());
    }

    #[test]
    fn port_without_listener_is_not_ready() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(!greets(&SMTP, free, Duration::from_millis(200)));
    }
}
