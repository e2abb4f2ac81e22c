//! A gate that may still be starting.

use std::sync::Arc;

use callgate::Gate;
use futures::future::{BoxFuture, Shared};

/// Resolves to the gate when it is made.
pub(crate) type PendingGate = Shared<BoxFuture<'static, Arc<Gate>>>;
