//! A client certificate that lives in memory only: an actor's, made by its worker.

use std::fmt;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::{TlsError, provider};

/// A chain (leaf first) and its key. Cheap to clone; never shows the key.
#[derive(Clone)]
pub struct HeldCertificate(Arc<SingleCertAndKey>);

impl HeldCertificate {
    /// From DER: certificates, and the key in PKCS #8.
    ///
    /// # Errors
    /// When the key cannot be read, or is not the leaf's.
    pub fn from_der(chain: Vec<Vec<u8>>, key: Vec<u8>) -> Result<Self, TlsError> {
        let chain: Vec<_> = chain.into_iter().map(CertificateDer::from).collect();
        if chain.is_empty() {
            return Err(TlsError::Config("the certificate chain is empty".into()));
        }
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
        let pair = CertifiedKey::from_der(chain, key, &provider())
            .map_err(|error| TlsError::Config(format!("the certificate and its key: {error}")))?;
        Ok(Self(Arc::new(SingleCertAndKey::from(pair))))
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesClientCert> {
        self.0.clone()
    }
}

impl fmt::Debug for HeldCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldCertificate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> (Vec<u8>, Vec<u8>) {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        (certificate.der().to_vec(), key.serialize_der())
    }

    #[test]
    fn a_key_must_be_the_leafs() {
        let ((certificate, key), (_, other)) = (made(), made());
        assert!(HeldCertificate::from_der(vec![certificate.clone()], key.clone()).is_ok());
        assert!(HeldCertificate::from_der(vec![certificate.clone()], other).is_err());
        assert!(HeldCertificate::from_der(vec![certificate], b"no key".to_vec()).is_err());
        assert!(HeldCertificate::from_der(vec![], key).is_err());
    }
}
