//! What a service offers to those who connect: versions, algorithms, certificates, protocols and tickets.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};

use crate::certificate::Certificate;
use crate::clock::Clock;
use crate::hybrid::X25519_MLKEM768;
use crate::names::Names;
use crate::tickets::TicketKeys;

/// Tickets that a client of TLS 1.3 is given: two, since browsers connect twice at once and use each ticket once.
const TICKETS: usize = 2;

/// What one service offers beside what all of them do.
#[derive(Clone, Copy)]
pub struct Offer<'a> {
    /// The service's name: tickets of one service are of no use at another.
    pub name: &'a str,
    /// The protocols that may be spoken inside (RFC 7301), the one liked best first. If there is one, a client that names none is served, and one that names only
    /// others is refused.
    pub protocols: &'static [&'static [u8]],
    /// Whose tickets are given and taken; `None`: there are none.
    pub tickets: Option<&'a TicketKeys>,
}

/// What a service offers. Whoever has it keeps it: new settings are for new connections.
#[derive(Clone)]
pub struct Settings {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) protocols: &'static [&'static [u8]],
}

/// Why there are no settings.
#[derive(Clone, PartialEq, Debug)]
pub enum SettingsError {
    /// No certificate was given.
    NoCertificate,
    /// The library has refused.
    Library(rustls::Error),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::NoCertificate => out.write_str("there is no certificate"),
            SettingsError::Library(error) => write!(out, "TLS cannot be offered: {error}"),
        }
    }
}

impl Settings {
    /// `certificates`: the first is for whoever asks for no name that another has. `clock`: the one of the core that the connections are on.
    pub fn new(
        certificates: Vec<Certificate>,
        clock: &Clock,
        offer: &Offer<'_>,
    ) -> Result<Settings, SettingsError> {
        if certificates.is_empty() {
            return Err(SettingsError::NoCertificate);
        }
        let mut provider = ring::default_provider();
        provider.kx_groups.insert(0, X25519_MLKEM768);
        let builder =
            ServerConfig::builder_with_details(Arc::new(provider), Arc::new(clock.clone()));
        let builder =
            builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(SettingsError::Library)?;
        let mut config =
            builder.with_no_client_auth().with_cert_resolver(Arc::new(Names::new(certificates)));
        config.alpn_protocols = offer.protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        if let Some(keys) = offer.tickets {
            config.ticketer = Arc::new(keys.of_service(offer.name, clock));
            config.send_tls13_tickets = TICKETS;
        }
        config.max_early_data_size = 0;
        // For the records, which are ours once the handshake is done.
        config.enable_secret_extraction = true;
        Ok(Settings { config: Arc::new(config), protocols: offer.protocols })
    }
}
