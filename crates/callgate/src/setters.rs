//! The form of builders: methods that set one value and give the builder back.

/// Defines methods that change the value and return it.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($this:ident, $value:ident: $type:ty) $body:block)*) => {$(
        $(#[$doc])*
        pub fn $name(mut $this, $value: $type) -> Self {
            $body
            $this
        }
    )*};
}

/// Defines the setters of a type whose field `settings` is a `CallSettings`.
macro_rules! call_setters {
    () => {
        $crate::setters::setters! {
            /// Sets the run's id. No two runs may have the same. Default: a new one.
            #[doc(hidden)]
            id(self, id: impl Into<String>) { self.settings.id = Some(id.into()); }

            /// Sets the name and the version of the MCP client, for the ledger.
            #[doc(hidden)]
            client(self, client: Option<Arc<str>>) { self.settings.client = client; }

            /// Sets the rules.
            rules(self, rules: Rules) { self.settings.rules = Some(Arc::new(rules)); }

            /// Sets the asker for questions.
            asker(self, asker: Arc<dyn Asker>) { self.settings.asker = Some(asker); }

            /// Sets the caller that servers can ask during calls, and that hears of progress.
            #[doc(hidden)]
            caller(self, caller: Arc<dyn Caller>) { self.settings.caller = Some(caller); }

            /// Adds a grant, such as a [`Preview`](crate::dry_run::Preview) shows to be needed. It allows
            /// calls that a rule would ask about, and none that a rule denies.
            grant(self, grant: Grant) { self.settings.grants.push(grant); }

            /// Sets the session: its grants, and its counts for rules with `maxCalls`. For a host
            /// with several callers, each of which answers for itself.
            session(self, session: Arc<SessionGrants>) { self.settings.session = Some(session); }

            /// Makes only calls that read; see [`DryRun`].
            dry_run(self, dry_run: DryRun) { self.settings.dry_run = Some(Arc::new(dry_run)); }

            /// Sets the token whose cancellation ends the run with
            /// [`Status::Cancelled`](crate::Status::Cancelled), or the call with
            /// [`CallErrorKind::Cancelled`](crate::CallErrorKind::Cancelled).
            cancel_on(self, token: CancellationToken) { self.settings.cancel = token; }
        }
    };
}

pub(crate) use {call_setters, setters};
