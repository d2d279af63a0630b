//! Whose certificate is taken: one that the trust store holds, or that one of its authorities has signed.
//!
//! Two habits of operators of ZooKeeper are honoured as Java honours them. A trust store may hold the members' own
//! certificates, signed by themselves. And a certificate that names no hosts may have one as its common name, which is
//! what `keytool` makes unless it is told otherwise.

use std::sync::Arc;

use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, DistinguishedName, Error, RootCertStore};

use crate::certificate::Facts;
use crate::error::TlsError;
use crate::signatures::verify_signatures;

/// Verifier for both directions: a member that is called, and a member or a client that calls.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// The certificates of the trust store.
    trusted: Vec<CertificateDer<'static>>,
    /// The certificates of the trust store, as those that sign others.
    roots: Arc<RootCertStore>,
    callers: Arc<dyn ClientCertVerifier>,
    algorithms: WebPkiSupportedAlgorithms,
    verify_called: bool,
    /// True if one that calls must show a certificate.
    is_mandatory: bool,
}

impl Verifier {
    pub(crate) fn new(
        trusted: Vec<CertificateDer<'static>>,
        revoked: Vec<CertificateRevocationListDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, TlsError> {
        let mut roots = RootCertStore::empty();
        // Stores of Java hold many authorities, some of them too old to be read. Such sign no certificate.
        roots.add_parsable_certificates(trusted.iter().cloned());
        let roots = Arc::new(roots);
        let callers = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            // As Java does, if it looks at lists at all: one that is missing or outdated vouches for no certificate.
            .with_crls(revoked)
            .enforce_revocation_expiration()
            .build()
            .map_err(|error| TlsError::Trust(error.to_string()))?;
        let algorithms = provider.signature_verification_algorithms;
        Ok(Verifier { trusted, roots, callers, algorithms, verify_called: true, is_mandatory: true })
    }

    /// Leaves out the host of a member that is called, if it is not to be verified.
    pub(crate) fn with_verified_hosts(self, verify_called: bool) -> Verifier {
        Verifier { verify_called, ..self }
    }

    /// Takes those that call without a certificate, too.
    pub(crate) fn optional(self) -> Verifier {
        Verifier { is_mandatory: false, ..self }
    }

    /// True if a member that calls would be believed, but for its name.
    pub(crate) fn check_caller(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let (own, others) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
        if self.is_trusted_itself(own) {
            return check_times(own, now);
        }
        self.callers.verify_client_cert(own, others, now).map(drop)
    }

    /// True if a member that is called would be believed, but for its name.
    pub(crate) fn check_called(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let (own, others) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
        if self.is_trusted_itself(own) {
            return check_times(own, now);
        }
        let parsed = ParsedCertificate::try_from(own)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, now, self.algorithms.all)
    }

    fn is_trusted_itself(&self, certificate: &CertificateDer<'_>) -> bool {
        self.trusted.contains(certificate)
    }
}

/// True if a certificate is one for `host`.
pub(crate) fn check_host(certificate: &CertificateDer<'_>, host: &ServerName<'_>) -> Result<(), Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    let refused = match verify_server_name(&parsed, host) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let common_name = Facts::of(certificate).and_then(|facts| facts.common_name_in_place_of_hosts());
    match common_name {
        Some(name) if is_name_of(&name, host) => Ok(()),
        _ => Err(refused),
    }
}

/// True if a common name is that of a host, or `*` in place of the first label of one; addresses have no such patterns.
fn is_name_of(common_name: &str, host: &ServerName<'_>) -> bool {
    let text = host.to_str();
    if common_name.eq_ignore_ascii_case(&text) {
        return true;
    }
    let (Some(domain), ServerName::DnsName(_)) = (common_name.strip_prefix("*."), host) else { return false };
    let is_in_domain = |(_, rest): (&str, &str)| rest.eq_ignore_ascii_case(domain);
    domain.contains('.') && text.split_once('.').is_some_and(is_in_domain)
}

/// Checks the times of a certificate that no authority has to vouch for.
fn check_times(certificate: &CertificateDer<'_>, time: UnixTime) -> Result<(), Error> {
    let facts = Facts::of(certificate).ok_or(CertificateError::BadEncoding)?;
    if time > facts.not_after() {
        return Err(CertificateError::ExpiredContext { time, not_after: facts.not_after() }.into());
    }
    if time < facts.not_before() {
        return Err(CertificateError::NotValidYetContext { time, not_before: facts.not_before() }.into());
    }
    Ok(())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain: Vec<_> = std::iter::once(end_entity).chain(intermediates).cloned().collect();
        self.check_called(&chain, now)?;
        if self.verify_called {
            check_host(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    verify_signatures!(algorithms);
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    /// None: a stranger need not know whom this member trusts, and a member has one certificate anyway.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    /// The name is verified when the caller has said which member it is.
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let chain: Vec<_> = std::iter::once(end_entity).chain(intermediates).cloned().collect();
        self.check_caller(&chain, now)?;
        Ok(ClientCertVerified::assertion())
    }

    verify_signatures!(algorithms);
}
