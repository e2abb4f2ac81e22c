//! What a request takes without waiting.

use std::sync::Arc;

use http::HeaderValue;
use url::Url;

use super::super::tokens::{Tokens, covers};

#[derive(Clone, Default)]
pub(super) enum Ready {
    /// Nobody has looked yet.
    #[default]
    Unknown,
    /// There is no login: requests go without a token until one is refused.
    None,
    Token {
        header: HeaderValue,
        /// When it has to be renewed.
        tokens: Box<Tokens>,
        /// What it is for.
        resource: String,
        /// The person's login that it is of.
        login: Option<Arc<str>>,
        /// When that was made.
        made: Option<u64>,
    },
}

impl Ready {
    pub(super) fn header(&self) -> Option<HeaderValue> {
        match self {
            Self::Token { header, .. } => Some(header.clone()),
            Self::None | Self::Unknown => None,
        }
    }

    /// The name of the person's login that it is of.
    pub(super) fn login(&self) -> Option<Arc<str>> {
        match self {
            Self::Token { login, .. } => login.clone(),
            Self::None | Self::Unknown => None,
        }
    }

    /// When the person's login was made, if a request that had this header went with it.
    pub(super) fn made_if_sent(&self, sent: Option<&HeaderValue>) -> Option<u64> {
        match self {
            Self::Token { header, made, .. } => made.filter(|_| Some(header) == sent),
            Self::None | Self::Unknown => None,
        }
    }

    /// Whether it may go along to this URL.
    pub(super) fn may_go(&self, url: &Url) -> bool {
        match self {
            Self::Token { resource, .. } => covers(resource, url.as_str()),
            Self::None | Self::Unknown => true,
        }
    }

    /// Whether a request that had this header would have another one now.
    pub(super) fn is_other_than(&self, sent: Option<&HeaderValue>) -> bool {
        match self {
            Self::Token { header, .. } => Some(header) != sent,
            Self::None | Self::Unknown => false,
        }
    }
}
