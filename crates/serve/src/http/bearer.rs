//! The configured bearer tokens, each with its owner's name.

use std::collections::HashMap;

use callgate::faces::Source;
use sha2::{Digest as _, Sha256};

use crate::config::MIN_TOKEN;

/// The tokens by their hashes.
pub(crate) struct Tokens {
    owners: HashMap<[u8; 32], String>,
}

impl Tokens {
    pub(crate) async fn look_up(sources: &[(String, Source)]) -> Result<Self, String> {
        let mut owners = HashMap::new();
        for (name, source) in sources {
            let token = source.look_up().await;
            let token = token.map_err(|error| format!("the token of {name:?}: {error}"))?;
            if token.len() < MIN_TOKEN {
                return Err(format!(
                    "the token of {name:?} has fewer than {MIN_TOKEN} characters and could be \
                     guessed; make one with `openssl rand -hex 32`"
                ));
            }
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!(
                    "the token of {name:?} has characters that a header cannot contain; use \
                     letters and digits"
                ));
            }
            if let Some(other) = owners.insert(hash(&token), name.clone()) {
                return Err(format!(
                    "{other:?} and {name:?} have the same token; give each its own"
                ));
            }
        }
        Ok(Self { owners })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The owner of a token. Only hashes are compared, so that the time reveals nothing about the
    /// tokens.
    pub(crate) fn owner(&self, token: &str) -> Option<&str> {
        self.owners.get(&hash(token)).map(String::as_str)
    }

    /// The owners of a token that is in both, in the order of these and the other.
    pub(crate) fn shared<'a>(&'a self, other: &'a Self) -> Option<(&'a str, &'a str)> {
        let mut owners = self.owners.iter();
        owners.find_map(|(hash, owner)| Some((owner.as_str(), other.owners.get(hash)?.as_str())))
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tokens(given: &[(&str, &str)]) -> Result<Tokens, String> {
        let sources = given.iter();
        let sources: Vec<_> = sources
            .map(|(name, token)| ((*name).to_owned(), Source::text(*token)))
            .collect();
        Tokens::look_up(&sources).await
    }

    #[tokio::test]
    async fn each_token_has_its_owner() {
        let (a, b) = ("a-token-of-16-ch", "b-token-of-16-ch");
        let tokens = tokens(&[("alice", a), ("bob", b)]).await.expect("tokens");
        assert_eq!(tokens.owner(a), Some("alice"));
        assert_eq!(tokens.owner(b), Some("bob"));
        for wrong in [
            "",
            "a-token-of-16-c",
            "A-token-of-16-ch",
            "a-token-of-16-chh",
        ] {
            assert_eq!(tokens.owner(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn weak_tokens_are_refused() {
        let same = "a-token-of-16-ch";
        for (given, why) in [
            (&[("alice", "hunter2")][..], "has fewer than 16 characters"),
            (
                &[("alice", "a token of 16 characters")],
                "a header cannot contain",
            ),
            (
                &[("alice", same), ("bob", same)],
                "\"alice\" and \"bob\" have the same token",
            ),
        ] {
            let refused = tokens(given).await.err().expect(why);
            assert!(refused.contains(why), "{refused}");
        }
    }
}
