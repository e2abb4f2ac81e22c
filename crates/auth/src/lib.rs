//! Internal crate of Callgate: logins at HTTP servers, values looked up when they are
//! needed, and the redaction of secrets in messages.
//!
//! A connection asks its [`Authorization`] for the header of each request and reports each
//! refusal. The login, the tokens and the place where they are kept stay in this crate.

mod account;
mod browser;
mod discovery;
mod error;
mod http;
mod keyring;
mod login;
mod manage;
mod redact;
mod redirect;
mod renew;
mod settings;
mod source;
mod store;
mod tokens;

pub use self::browser::{Browser, LoginPage, OpenUrl};
pub use self::error::AuthError;
pub use self::http::is_loopback;
pub use self::manage::{
    LoggedOut, LoginRequest, LoginStatus, login, login_id, logout, status, takes_login,
};
pub use self::redact::{MAX_MESSAGE_BYTES, Redact, cut_message, url_secrets};
pub use self::renew::{Authorization, Prompt, Refused};
pub use self::settings::{Endpoint, Grant, OAuth, TokenPlace};
pub use self::source::{Origin, Source};
pub use self::store::{Kept, xdg_folder};
