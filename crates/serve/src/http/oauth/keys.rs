//! The keys of an authorization server (RFC 7517), as far as they can sign
//! access tokens.

use std::fmt;
use std::str::FromStr as _;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// The most keys that are kept of a server.
const MAX_KEYS: usize = 64;

/// The keys cannot be had; with why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Away(pub(crate) String);

/// One key.
#[derive(Clone)]
pub(super) struct Key {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    decoding: DecodingKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// The keys of a document; those that are not usable are passed over.
pub(super) fn parse(text: &[u8], allowed: &[Algorithm]) -> Result<Vec<Key>, String> {
    let document: Document =
        serde_json::from_slice(text).map_err(|_| "its keys are no JWK set".to_owned())?;
    let keys = document.keys.into_iter().take(MAX_KEYS);
    let keys: Vec<Key> = keys
        .filter_map(|value| Key::new(&serde_json::from_value(value).ok()?, allowed))
        .collect();
    match keys.is_empty() {
        true => Err("none of its keys can sign tokens that are taken".to_owned()),
        false => Ok(keys),
    }
}

impl Key {
    fn new(jwk: &Jwk, allowed: &[Algorithm]) -> Option<Self> {
        let common = &jwk.common;
        let signs = common
            .public_key_use
            .as_ref()
            .is_none_or(|usage| *usage == PublicKeyUse::Signature)
            && common
                .key_operations
                .as_ref()
                .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        if !signs {
            return None;
        }
        // What the key can do, whatever it says of itself; a shared secret is
        // nothing that signs.
        let able: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => &[
                Algorithm::RS256,
                Algorithm::RS384,
                Algorithm::RS512,
                Algorithm::PS256,
                Algorithm::PS384,
                Algorithm::PS512,
            ],
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => &[Algorithm::ES256],
                EllipticCurve::P384 => &[Algorithm::ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                &[Algorithm::EdDSA]
            }
            _ => return None,
        };
        let said = match &common.key_algorithm {
            None => None,
            Some(said) => Some(Algorithm::from_str(&said.to_string()).ok()?),
        };
        let algorithms: Vec<Algorithm> = able
            .iter()
            .copied()
            .filter(|able| allowed.contains(able) && said.is_none_or(|said| said == *able))
            .collect();
        if algorithms.is_empty() {
            return None;
        }
        Some(Self {
            kid: common.key_id.clone(),
            algorithms,
            decoding: DecodingKey::from_jwk(jwk).ok()?,
        })
    }

    /// Whether a token that names this key, or none, can be signed with it.
    pub(super) fn fits(&self, kid: Option<&str>, algorithm: Algorithm) -> bool {
        let named = kid.is_none_or(|kid| self.kid.as_deref() == Some(kid));
        named && self.algorithms.contains(&algorithm)
    }

    pub(super) fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("kid", &self.kid)
            .field("algorithms", &self.algorithms)
            .finish_non_exhaustive()
    }
}
