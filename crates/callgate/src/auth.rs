//! Logins at HTTP servers: making them, looking at them, ending them.
//!
//! A login is made by a person with a browser, once; its tokens are kept in the
//! system's keyring, and the gate uses and renews them from then on. A host
//! shows the login's URL by an [`OpenUrl`]: to [`login`] for a login that a
//! person asked for, or to [`GateBuilder::browser`](crate::GateBuilder::browser)
//! for one that a call turns out to need.

pub use callgate_broker::auth::{
    AuthError, AuthErrorKind, Browser, Grant, Kept, LoggedOut, LoginRequest, LoginStatus, OAuth,
    OpenUrl, TokenPlace, login, logout, status, takes_login,
};
