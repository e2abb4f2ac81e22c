//! `callgate auth`: logins at HTTP servers.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use callgate::ServerSpec;
use callgate::faces::auth;
use callgate::faces::auth::{AuthError, LoggedOut, LoginPage, LoginRequest, LoginStatus, OpenUrl};
use callgate_serve::config::{HttpConfig, subject_user, token_user};
use callgate_text::one_line;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use indicatif::HumanDuration;
use serde_json::{Value, json};

use crate::args::{AuthArgs, AuthCommand};
use crate::setup::Sources;
use crate::terminal::{Conversation, is_attended};
use crate::{print, setup};

/// Characters shown of an authorization server's text.
const MAX_TEXT: usize = 2_000;

/// Runs the command, and returns the exit code.
pub async fn execute(config: &Sources, args: AuthArgs) -> anyhow::Result<u8> {
    let setup::Loaded {
        mut config, serve, ..
    } = setup::required_configuration(config).await?;
    let user = owner(&serve.http, &args)?;
    for oauth in config.logins_mut() {
        oauth.user.clone_from(&user);
    }
    let cancel = setup::cancel_on_signal()?;
    let done = async {
        match args.command {
            AuthCommand::Login {
                server,
                scopes,
                browser,
                no_browser,
            } => {
                let server = named(&config.servers, &server)?;
                login(server, &scopes, browser, no_browser).await
            }
            AuthCommand::Status { server, json } => {
                let takes_login = |server: &&ServerSpec| match auth::takes_login(server) {
                    Ok(()) => true,
                    Err(error) => !error.is_no_login(),
                };
                let servers = match server {
                    Some(server) => vec![named(&config.servers, &server)?],
                    None => config.servers.iter().filter(takes_login).collect(),
                };
                status(&servers, json).await
            }
            AuthCommand::Logout { server } => logout(named(&config.servers, &server)?).await,
        }
    };
    tokio::select! {
        code = done => code,
        () = cancel.cancelled() => Ok(setup::cancelled("the command was cancelled")),
    }
}

/// The user who owns the login. A login needs a name that a token of the configuration has; if the
/// token was removed, its login can still be shown and ended.
fn owner(http: &HttpConfig, args: &AuthArgs) -> anyhow::Result<Option<String>> {
    if let Some(name) = &args.user {
        let names: Vec<&str> = http.token_names().collect();
        if !names.contains(&name.as_str()) {
            let unknown = format!(
                "no token of \"bearer\" in \"serve\", \"http\" of the configuration is named \
                 {name:?}; the names are: {}",
                names.join(", ")
            );
            if matches!(args.command, AuthCommand::Login { .. }) {
                bail!(unknown);
            }
            print::warning(&unknown);
        }
        return Ok(Some(token_user(name)));
    }
    match (&args.subject, &http.oauth) {
        (None, _) => Ok(None),
        (Some(subject), Some(oauth)) => Ok(Some(subject_user(&oauth.issuer, subject))),
        (Some(_), None) => bail!(
            "--subject needs \"oauth\" in \"serve\", \"http\" of the configuration, which names the \
             issuer of the subject"
        ),
    }
}

/// Prints an error, and returns its exit code.
fn failed(error: &AuthError) -> u8 {
    print::error(&error.to_string());
    if error.is_no_login() {
        crate::exit::USAGE
    } else {
        1
    }
}

async fn login(
    server: &ServerSpec,
    scopes: &[String],
    browser: bool,
    no_browser: bool,
) -> anyhow::Result<u8> {
    if let Err(error) = auth::takes_login(server) {
        return Ok(failed(&error));
    }
    let attended = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !attended && !no_browser {
        bail!(
            "a login needs a person at a terminal; run the command in one, or add --no-browser if \
             a person reads its output"
        );
    }
    let mut request = LoginRequest::new(Arc::new(Page { open: browser }));
    let scopes = scopes.iter().flat_map(|scopes| scopes.split_whitespace());
    request.scopes.extend(scopes.map(str::to_owned));
    match auth::login(server, request).await {
        Ok(status) => {
            print::out(&format!("{}: {}", server.name, text(&status)))?;
            if !status.in_keyring {
                print::err(
                    "the tokens are in a file that only you can read; a keyring would be safer\n",
                );
            }
            Ok(0)
        }
        Err(error) => Ok(failed(&error)),
    }
}

async fn status(servers: &[&ServerSpec], json: bool) -> anyhow::Result<u8> {
    if servers.is_empty() {
        print::err(
            "no server in the configuration takes a login: it must have a \"url\", no \
             \"Authorization\" header, and no \"oauth\": false\n",
        );
    }
    let mut code = 0;
    let mut listed = Vec::new();
    for server in servers {
        let name = &server.name;
        let found = auth::status(server).await;
        code = code.max(match &found {
            Ok(Some(status)) => u8::from(needs_login(status)),
            Ok(None) => 1,
            Err(error) => failed(error),
        });
        if json {
            listed.push(as_json(name, found.ok().flatten().as_ref()));
            continue;
        }
        match found {
            Ok(Some(status)) => print::out(&format!("{name}: {}", text(&status)))?,
            // Only a call shows whether the server needs a login.
            Ok(None) => print::out(&format!(
                "{name}: not logged in (set \"oauth\": false if it needs no login)\n"
            ))?,
            Err(_) => {}
        }
    }
    if json {
        print::json(&listed)?;
    }
    Ok(code)
}

/// True if a person has to log in again before the next call.
pub fn needs_login(status: &LoginStatus) -> bool {
    status.ended || (status.expired && !status.renewable)
}

/// A server's login, without tokens.
fn as_json(server: &str, status: Option<&LoginStatus>) -> Value {
    let login = status.map(|status| {
        json!({
            "issuer": status.issuer,
            "resource": status.resource,
            "clientId": status.client_id,
            "scopes": status.scopes,
            "endsInSeconds": status.ends_in.map(|left| left.as_secs()),
            "expired": status.expired,
            "ended": status.ended,
            "renewable": status.renewable,
            "inKeyring": status.in_keyring,
            "file": status.file.display().to_string(),
        })
    });
    let is_usable = status.is_some_and(|status| !needs_login(status));
    json!({ "server": server, "loggedIn": is_usable, "login": login })
}

async fn logout(server: &ServerSpec) -> anyhow::Result<u8> {
    let name = &server.name;
    match auth::logout(server).await {
        Ok(LoggedOut::NotLoggedIn) => print::out(&format!("{name}: was not logged in\n"))?,
        Ok(LoggedOut::Revoked) => print::out(&format!(
            "{name}: logged out; the tokens are deleted and revoked\n"
        ))?,
        Ok(_) => print::out(&format!(
            "{name}: logged out; the tokens are deleted here, but not revoked at the \
             authorization server\n"
        ))?,
        Err(error) => return Ok(failed(&error)),
    }
    Ok(0)
}

fn named<'a>(servers: &'a [ServerSpec], name: &str) -> anyhow::Result<&'a ServerSpec> {
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let named = servers.iter().find(|server| server.name == name);
    named.with_context(|| match &*names.join(", ") {
        "" => format!("no server is named {name:?}: the configuration has no servers"),
        names => format!("no server is named {name:?}; the servers are: {names}"),
    })
}

fn text(status: &LoginStatus) -> String {
    let state = if status.ended {
        "the login has ended; log in again".to_owned()
    } else if status.expired && status.renewable {
        "logged in, the token has expired and is renewed at the next call".to_owned()
    } else if status.expired {
        "logged in, the token has expired; log in again".to_owned()
    } else {
        let ends = status.ends_in.map_or_else(
            || "until the server refuses the token".to_owned(),
            |left| format!("for {}", HumanDuration(left)),
        );
        let then = if status.renewable {
            ", then renewed"
        } else {
            ""
        };
        format!("logged in, {ends}{then}")
    };
    // An authorization server chooses these texts: they must not look like ours.
    let escaped = |text: &str| one_line(text, MAX_TEXT);
    let scopes = if status.scopes.is_empty() {
        "not stated".to_owned()
    } else {
        escaped(&status.scopes.join(" "))
    };
    let kept = if status.in_keyring {
        "in the keyring".to_owned()
    } else {
        format!("in {}", status.file.display())
    };
    format!(
        "{state}\n  at:     {}\n  for:    {}\n  client: {}\n  scopes: {scopes}\n  \
         tokens: {kept}\n",
        escaped(&status.issuer),
        escaped(&status.resource),
        escaped(&status.client_id)
    )
}

/// Prints the URL of a login page, and opens it if a flag asks for that.
struct Page {
    open: bool,
}

impl OpenUrl for Page {
    fn open<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, io::Result<()>> {
        let (text, url) = (one_line(&page.to_string(), MAX_TEXT), page.url.as_str());
        print::err(&format!(
            "{text}\nopen this page in a browser on this machine, and log in there:\n{url}\n"
        ));
        // A person can open the printed URL.
        if self.open
            && let Err(reason) = crate::elicit::page::open(url)
        {
            print::err(&format!("{reason}\n"));
        }
        std::future::ready(Ok(())).boxed()
    }

    fn approve<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, io::Result<Option<bool>>> {
        async move {
            if !is_attended() {
                return Ok(None);
            }
            let text = format!(
                "┌ {}\n├ The page is on a different host than its issuer, and does not prove that \
                 they\n├ belong together: the server may want your login at a different service.\n",
                one_line(&page.to_string(), MAX_TEXT)
            );
            let mut terminal = Conversation::begin().await?;
            terminal.show(&text).await?;
            let answer = terminal
                .agrees("do they belong together, so log in there?")
                .await?;
            Ok(Some(answer.unwrap_or(false)))
        }
        .boxed()
    }
}
