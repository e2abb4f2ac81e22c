//! The sections of a file: servers, permissions, limits, the type check, the
//! ledger.

use callgate_policy::Rules;
use callgate_policy::flow::FlowRules;
use callgate_sandbox::JailOptions;
use jsonc_parser::ast::{Object, ObjectProp};
use jsonc_parser::common::{Range, Ranged as _};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::error::{ConfigError, ConfigErrorKind};
use super::expand::Variables;
use super::flows;
use super::reader::{Reader, name_range};
use super::server::{self, Entry};
use super::tools;
use super::{
    CacheConfig, CheckConfig, Config, HttpConfig, LedgerConfig, LimitsConfig, ModelsConfig, Place,
    ServeConfig, UsersConfig, cache, keys, models, permissions, roots, sandbox, serve,
};
use crate::settings::{CheckMode, ExtractLimits, SearchBy};
use crate::tool_settings::ToolSettings;

/// The most full ledgers that are kept: each time one is full, each is renamed.
const MAX_KEPT_LEDGERS: u64 = 1_000;

/// JSON with comments and trailing commas, and nothing looser.
pub(super) const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads the text of a file.
pub(super) fn read(
    text: &str,
    place: &Place,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let name = place.path.file_name().unwrap_or_default().to_string_lossy();
    let mut reader = Reader {
        text,
        shown: &place.shown,
        variables: Variables {
            environment,
            folder: &place.folder,
            alias: place.alias.as_deref(),
        },
        used: Vec::new(),
        ours_alone: name.ends_with("callgate.json"),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    let mut config = Config {
        path: place.path.clone(),
        folder: place.folder.clone(),
        servers: Vec::new(),
        disabled: Vec::new(),
        permissions: Rules::default(),
        flows: FlowRules::default(),
        limits: LimitsConfig::default(),
        jail: JailOptions::default(),
        check: CheckConfig::default(),
        ledger: LedgerConfig::default(),
        http: HttpConfig::default(),
        users: UsersConfig::default(),
        models: ModelsConfig::default(),
        search: SearchBy::default(),
        extract: ExtractLimits::default(),
        roots: Vec::new(),
        serve: ServeConfig::default(),
        tools: ToolSettings::default(),
        cache: CacheConfig::default(),
        skills: Vec::new(),
        warnings: Vec::new(),
    };
    match parse_to_ast(text, &CollectOptions::default(), &SYNTAX) {
        Ok(parsed) => match parsed.value.as_ref().map(|value| value.as_object()) {
            Some(Some(object)) => file(&mut reader, object, &mut config),
            Some(None) => reader.error(
                Range::from_byte_index(0),
                ConfigErrorKind::Value,
                "the file must hold one object, such as { \"mcpServers\": {} }",
            ),
            None => reader.error(
                Range::from_byte_index(0),
                ConfigErrorKind::Syntax,
                "the file is empty; write an object, such as { \"mcpServers\": {} }",
            ),
        },
        Err(error) => reader.error(
            error.range(),
            ConfigErrorKind::Syntax,
            format!("not valid JSON: {}", lower_first(&error.kind().to_string())),
        ),
    }
    config.warnings = reader.warnings;
    config.warnings.sort_by_key(|warning| warning.place);
    match ConfigError::of(reader.problems) {
        None => Ok(config),
        Some(error) => Err(error),
    }
}

fn file(reader: &mut Reader<'_>, object: &Object<'_>, config: &mut Config) {
    let mut servers_under: Option<&str> = None;
    let mut serve = None;
    let mut search = None;
    for property in reader.properties(object, "the file", &keys::TOP) {
        let key = property.name.as_str();
        match key {
            "mcpServers" | "servers" => {
                if servers_under.is_some_and(|under| under != key) {
                    reader.error(
                        name_range(property),
                        ConfigErrorKind::Key,
                        "the file has both \"mcpServers\" and \"servers\"; put all servers under \
                         one of them",
                    );
                }
                servers_under = Some(key);
                servers(reader, property, config);
            }
            "permissions" => permissions::read(reader, property, &mut config.permissions),
            "limits" => limits(reader, property, &mut config.limits),
            "sandbox" => sandbox::read(reader, property, &mut config.jail),
            "check" => check(reader, property, config),
            "models" => config.models = models::models(reader, property),
            "search" => {
                config.search = models::search(reader, property);
                search = Some(property);
            }
            "extract" => config.extract = models::extract(reader, property),
            "ledger" => ledger(reader, property, config),
            "cache" => cache::read(reader, property, &mut config.cache),
            "serve" => serve = Some(property),
            "roots" => config.roots = roots::read(reader, property),
            "flows" => flows::flows(reader, property, &mut config.flows),
            "toolLabels" => flows::tool_labels(reader, property, &mut config.flows),
            "tools" => tools::read(reader, property, &mut config.tools),
            // "$schema" is for editors.
            _ => {}
        }
    }
    // The model that picks may be a client's own.
    if let Some(property) = search
        && config.search == SearchBy::Hybrid
        && config.models.embeddings.is_none()
    {
        reader.warning(
            property.value.range(),
            ConfigErrorKind::Value,
            "\"search\" by \"hybrid\" compares words only: \"models\" names no \"embeddings\"; add \
             them, or leave \"search\" out",
        );
    }
    // Its roles name servers.
    if let Some(property) = serve {
        serve::read(reader, property, config);
    }
}

fn servers(reader: &mut Reader<'_>, property: &ObjectProp<'_>, config: &mut Config) {
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    reader.no_duplicates(object, &format!("\"{}\"", property.name.as_str()));
    for property in &object.properties {
        if property.name.as_str().is_empty() {
            reader.error(
                name_range(property),
                ConfigErrorKind::Key,
                "a server's name is empty; give it one",
            );
            continue;
        }
        flows::server_labels(reader, property, &mut config.flows);
        match server::read(reader, property) {
            Some(Entry::Enabled(server)) => config.servers.push(*server),
            Some(Entry::Disabled(name)) => config.disabled.push(name),
            None => {}
        }
    }
}

fn limits(reader: &mut Reader<'_>, property: &ObjectProp<'_>, limits: &mut LimitsConfig) {
    let what = "\"limits\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    for property in reader.properties(object, what, &keys::LIMITS) {
        match property.name.as_str() {
            "timeout" => limits.timeout = reader.duration(property, what),
            "runTimeout" => limits.run_timeout = reader.duration(property, what),
            "memory" => limits.memory = reader.memory(property, what),
            "output" => limits.output = reader.size(property, what),
            "outputLines" => limits.output_lines = reader.count(property, what),
            "result" => limits.result = reader.size(property, what),
            "callsInFlight" => limits.calls_in_flight = reader.count(property, what),
            _ => {}
        }
    }
}

fn check(reader: &mut Reader<'_>, property: &ObjectProp<'_>, config: &mut Config) {
    let what = "\"check\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    for property in reader.properties(object, what, &keys::CHECK) {
        if property.name.as_str() == "mode" {
            config.check.mode = reader.parsed(property, what, str::parse::<CheckMode>);
        } else {
            let path = server::expanded(reader, property, what);
            config.check.typescript = path.map(|path| config.folder.join(path));
        }
    }
}

fn ledger(reader: &mut Reader<'_>, property: &ObjectProp<'_>, config: &mut Config) {
    let what = "\"ledger\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    let mut has_path = false;
    for property in reader.properties(object, what, &keys::LEDGER) {
        match property.name.as_str() {
            "path" => {
                has_path = true;
                let path = server::expanded(reader, property, what);
                if path.as_deref() == Some("") {
                    reader.error(
                        property.value.range(),
                        ConfigErrorKind::Value,
                        "\"path\" in \"ledger\" is empty; name a file, or leave \"ledger\" out",
                    );
                }
                config.ledger.path = path.map(|path| config.folder.join(path));
            }
            "bodies" => {
                config.ledger.bodies = reader.boolean(property, what).unwrap_or_default();
            }
            "keep" => {
                let keep = reader.count(property, what);
                if keep.is_some_and(|keep| keep > MAX_KEPT_LEDGERS) {
                    reader.error(
                        property.value.range(),
                        ConfigErrorKind::Value,
                        format!("\"keep\" in {what} must be at most {MAX_KEPT_LEDGERS}"),
                    );
                }
                config.ledger.keep = keep.and_then(|keep| u32::try_from(keep).ok());
            }
            _ => config.ledger.max_bytes = reader.size(property, what),
        }
    }
    if !has_path {
        reader.error(
            name_range(property),
            ConfigErrorKind::Value,
            "\"ledger\" has no \"path\"; name the file that calls are written to",
        );
    }
}

/// A parser's message in the form of ours.
fn lower_first(message: &str) -> String {
    let mut characters = message.chars();
    characters
        .next()
        .map(|first| first.to_lowercase().chain(characters).collect())
        .unwrap_or_default()
}
