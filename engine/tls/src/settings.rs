//! The TLS settings of a service: versions, algorithms, certificates, protocols and tickets.

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
use crate::names::ServiceCertificates;
use crate::tickets::TicketKeys;

/// The number of tickets that a client of TLS 1.3 gets. Browsers open two connections at once and
/// use each ticket once, so they need two.
const TICKETS: usize = 2;

/// The settings that differ between services.
#[derive(Clone, Copy)]
pub struct Offer<'a> {
    /// The name of the service. Tickets of one service are invalid at another.
    pub name: &'a str,
    /// The application protocols (RFC 7301), the preferred one first. A client that names no
    /// protocol is served. If this list is not empty, a client that names only other protocols is
    /// rejected.
    pub protocols: &'static [&'static [u8]],
    /// The keys for tickets. `None` turns tickets off.
    pub tickets: Option<&'a TicketKeys>,
}

/// The settings of a service. A connection keeps the settings that it began with, and new settings
/// apply to new connections.
#[derive(Clone)]
pub struct TlsSettings {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) protocols: &'static [&'static [u8]],
}

/// The reason why settings cannot be made.
#[derive(Clone, PartialEq, Debug)]
pub enum SettingsError {
    /// No certificate was given.
    NoCertificate,
    /// rustls refuses the settings.
    Library(rustls::Error),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::NoCertificate => out.write_str("no certificate is configured"),
            SettingsError::Library(error) => write!(out, "TLS cannot be offered: {error}"),
        }
    }
}

impl TlsSettings {
    /// Makes the settings of a service. `certificates`: the first certificate is for a client that
    /// asks for no name, or for an unknown name. `clock`: the clock of the core that handles the
    /// connections.
    pub fn new(
        certificates: Vec<Certificate>,
        clock: &Clock,
        offer: &Offer<'_>,
    ) -> Result<TlsSettings, SettingsError> {
        if certificates.is_empty() {
            return Err(SettingsError::NoCertificate);
        }
        let mut provider = ring::default_provider();
        provider.kx_groups.insert(0, X25519_MLKEM768);
        let builder =
            ServerConfig::builder_with_details(Arc::new(provider), Arc::new(clock.clone()));
        let builder =
            builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(SettingsError::Library)?;
        let mut config = builder
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ServiceCertificates::new(certificates)));
        config.alpn_protocols = offer.protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        if let Some(keys) = offer.tickets {
            config.ticketer = Arc::new(keys.of_service(offer.name, clock));
            config.send_tls13_tickets = TICKETS;
        }
        config.max_early_data_size = 0;
        // This crate handles the records after the handshake, so it needs the keys.
        config.enable_secret_extraction = true;
        Ok(TlsSettings { config: Arc::new(config), protocols: offer.protocols })
    }
}
