//! End of a certificate's validity, for those who have to renew it in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustls::pki_types::CertificateDer;

use crate::certificate::Facts;
use crate::error::TlsError;
use crate::settings::{ClientTls, PeerTls};
use crate::store;

/// The end of the certificate that is in use, in seconds since 1970. Clones show the same one, also after its files have been read again.
#[derive(Clone, Debug, Default)]
pub struct CertificateEnd(Arc<AtomicU64>);

impl CertificateEnd {
    /// Takes the end of a new certificate.
    pub(crate) fn set(&self, own: Option<&CertificateDer<'_>>) {
        self.0.store(own.and_then(|own| end_s(own)).unwrap_or(0), Relaxed);
    }

    /// Seconds since 1970; `None` while no certificate could be read.
    pub fn seconds(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|seconds| *seconds > 0)
    }
}

/// The end of a certificate in DER, in seconds since 1970; `None` if it cannot be read.
pub fn certificate_end(der: &[u8]) -> Option<u64> {
    end_s(&CertificateDer::from(der))
}

fn end_s(certificate: &CertificateDer<'_>) -> Option<u64> {
    Facts::of(certificate).map(|facts| facts.not_after().as_secs())
}

impl ClientTls {
    /// The end of the certificate in the files that these settings name, in seconds since 1970.
    pub fn certificate_end(&self) -> Result<Option<u64>, TlsError> {
        let entry = store::read_key_entry(&self.key_store, self.certificates.as_deref())?;
        Ok(entry.chain.first().and_then(end_s))
    }
}

impl PeerTls {
    /// The end of the certificate in the files that these settings name, in seconds since 1970. A member that calls with another
    /// certificate is as good as the one of the two that ends first.
    pub fn certificate_end(&self) -> Result<Option<u64>, TlsError> {
        let own = store::read_key_entry(&self.key_store, self.certificates.as_deref())?;
        let calling = self.one_sided.calling_key_store.as_ref();
        let calling = calling
            .map(|store| store::read_key_entry(store, self.one_sided.calling_certificates.as_deref()))
            .transpose()?;
        let chains = [Some(own.chain), calling.map(|entry| entry.chain)];
        Ok(chains.into_iter().flatten().filter_map(|chain| chain.first().and_then(end_s)).min())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Authority, client_port_settings, expired, for_loopback, settings};
    use crate::{ClientPort, Tls};

    /// 2020-01-01.
    const EXPIRED_S: u64 = 1_577_836_800;

    #[test]
    fn the_end_is_that_of_the_certificate_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new("authority");
        let old = authority.issue(&expired(for_loopback()));
        let peer = settings(dir.path(), &old, &authority.pem());
        assert_eq!(peer.certificate_end().unwrap(), Some(EXPIRED_S));
        let client = client_port_settings(dir.path(), &old, &authority.pem());
        assert_eq!(client.certificate_end().unwrap(), Some(EXPIRED_S));

        let port = ClientPort::load(client).unwrap();
        let links = Tls::load(peer, "127.0.0.1".to_owned()).unwrap().certificate_end();
        assert_eq!((port.certificate_end(), links.seconds()), (Some(EXPIRED_S), Some(EXPIRED_S)));
        // A certificate that was renewed is seen without a restart.
        std::fs::write(dir.path().join("key.pem"), authority.issue(&for_loopback())).unwrap();
        assert!(port.certificate_end() > Some(EXPIRED_S));
        assert_eq!(certificate_end(b"no certificate"), None);
    }
}
