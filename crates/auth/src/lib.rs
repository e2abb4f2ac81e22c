//! Internal crate of Callgate: logins at HTTP servers, lookup of secret values, and their redaction
//! in messages.
//!
//! A connection gets the header of each request from its [`Authorization`] and reports each
//! refusal. Logins, tokens and their storage stay in this crate.

mod account;
mod browser;
mod discovery;
mod error;
mod http;
mod keyring;
mod login;
mod manage;
mod record;
mod redact;
mod redirect;
mod renew;
mod settings;
mod source;
mod store;
mod token_endpoint;

pub use self::browser::{Browser, LoginPage, OpenUrl};
pub use self::error::AuthError;
pub use self::http::is_loopback;
pub use self::login::LoginRequest;
pub use self::manage::{LoggedOut, LoginStatus, login, login_id, logout, status, takes_login};
pub use self::redact::{Redact, url_secrets};
pub use self::renew::{Authorization, Prompt, Refused};
pub use self::settings::{Endpoint, Grant, OAuth, TokenPlace};
pub use self::source::{Origin, Source, SourceError, has_keyring, store_in_keyring};
pub use self::store::xdg_folder;
