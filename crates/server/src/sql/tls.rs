//! TLS for clients: a certificate and its key, from PEM files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What clients that ask for a protocol within TLS ask for.
const PROTOCOL: &[u8] = b"postgresql";

/// Reads the certificate, with those that lead to one that clients trust behind it, and its private key. Versions 1.2 and 1.3 are
/// spoken; clients are not asked for certificates.
///
/// # Errors
/// Names the file, what is wrong with it, and what to do.
pub fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let wrong =
        |option: &str, path: &Path, problem: String| format!("{option} {}: {problem}", path.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong("--tls-certificate", certificate, error.to_string()))?;
    if chain.is_empty() {
        let problem = "there is no certificate: give a PEM file with a section BEGIN CERTIFICATE".to_owned();
        return Err(wrong("--tls-certificate", certificate, problem));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| {
        wrong("--tls-key", key, format!("{error}: give the private key as PEM, without a password"))
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong("--tls-key", key, format!("{error}: give the key of the certificate")))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_none_are_named() {
        let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let missing = Path::new("no-such-file.pem");
        let refused = |certificate: &Path| server_config(certificate, missing).unwrap_err();
        assert!(refused(missing).starts_with("--tls-certificate no-such-file.pem"));
        assert!(refused(manifest).contains("there is no certificate"));
    }
}
