//! The operators: their tokens, and the records that each may reach.

use std::collections::HashMap;
use std::sync::Arc;

use callgate_store::Access;

use super::bearer::Tokens;
use crate::config::{ServeConfig, users_named};

/// The operators by their tokens.
pub(crate) struct Operators {
    tokens: Tokens,
    known: HashMap<String, Arc<Operator>>,
}

/// An operator, during a request.
#[derive(Debug)]
pub(crate) struct Operator {
    pub(crate) name: String,
    /// The only users whose records the operator reaches; `None` for all.
    users: Option<Vec<String>>,
    /// True if the server has users. Runs of other commands of the account have none.
    has_users: bool,
    /// The users with the operator's own name.
    own: Vec<String>,
}

impl Operators {
    /// Looks up the tokens of the operators. None of them may be that of a user.
    pub(crate) async fn look_up(config: &ServeConfig, users: &Tokens) -> Result<Self, String> {
        let operators = &config.operators;
        let sources = operators.iter();
        let sources: Vec<_> = sources
            .map(|(name, operator)| (name.clone(), operator.token.clone()))
            .collect();
        let tokens = Tokens::look_up(&sources).await?;
        if let Some((operator, user)) = tokens.shared(users) {
            return Err(format!(
                "the operator {operator:?} and the user {user:?} have the same token; give each its \
                 own"
            ));
        }
        let known = operators.iter().map(|(name, operator)| {
            let known = Operator {
                name: name.clone(),
                users: operator.users(&config.http),
                has_users: !config.http.bearer.is_empty() || config.http.oauth.is_some(),
                own: users_named(name, &config.http),
            };
            (name.clone(), Arc::new(known))
        });
        let known = known.collect();
        Ok(Self { tokens, known })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The operator with this token.
    pub(crate) fn owner(&self, token: &str) -> Option<Arc<Operator>> {
        self.known.get(self.tokens.owner(token)?).cloned()
    }
}

impl Operator {
    /// The records that the operator reaches.
    pub(crate) fn access(&self) -> Access<'_> {
        match &self.users {
            Some(users) => Access::Users(users),
            None if self.has_users => Access::Named,
            None => Access::All,
        }
    }

    /// True if the operator may be this user.
    pub(crate) fn is_user(&self, user: &str) -> bool {
        self.own.iter().any(|own| own == user)
    }
}
