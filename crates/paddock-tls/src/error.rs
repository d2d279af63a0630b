//! Errors about keys and certificates.

use std::io;
use std::path::PathBuf;

/// A member cannot have the TLS that it is configured to have.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the password in {path} is not UTF-8")]
    PasswordText { path: PathBuf },
    #[error("{path} cannot be used")]
    Store {
        path: PathBuf,
        #[source]
        source: StoreError,
    },
    #[error("the key and the certificate in {path} cannot be used: {reason}")]
    Key { path: PathBuf, reason: String },
    #[error("no certificate of the trust store can be used: {0}")]
    Trust(String),
    #[error("{path} holds no list of revoked certificates that can be used: {reason}")]
    Revocations { path: PathBuf, reason: String },
    #[error("clients are asked for certificates, and there is no trust store to judge them by")]
    NoTrustStore,
    #[error("there are neither keys and certificates for clients nor between members")]
    NoKeys,
    #[error("none of the cipher suites belongs to a version of TLS that is allowed: {0}")]
    Versions(String),
}

/// A key store or trust store cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error(
        "it is neither PEM nor PKCS12 nor JKS; convert it: keytool -importkeystore -srckeystore FILE \
         -srcstoretype TYPE -destkeystore NEW.p12 -deststoretype PKCS12"
    )]
    Format,
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("its password is wrong or missing, or it is damaged")]
    Password,
    #[error("its private key is encrypted, and there is no password")]
    PasswordMissing,
    #[error(
        "its private key is encrypted in a way that is not offered; encrypt it anew: openssl pkcs8 -topk8 \
         -v2 aes-256-cbc -in FILE -out NEW.pem"
    )]
    Encryption,
    #[error(
        "it is protected in a way that is not offered ({0}); make a new store with a current keytool or openssl"
    )]
    Protection(String),
    #[error("it has no private key")]
    NoKey,
    #[error("it has no certificate for its private key")]
    NoChain,
    #[error("it has no certificate to trust")]
    NoCertificate,
}
