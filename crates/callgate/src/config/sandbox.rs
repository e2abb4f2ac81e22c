//! `sandbox`: the kernel layers around the workers that run scripts.

use callgate_sandbox::{JailLayer, JailOptions};
use jsonc_parser::ast::ObjectProp;
use jsonc_parser::common::Ranged as _;

use super::error::ConfigErrorKind;
use super::keys::Keys;
use super::reader::Reader;

/// Keys of `sandbox`.
const SANDBOX: Keys = Keys {
    ours: &["level", "require"],
    others: &[],
};

/// Reads `"sandbox": { "level": "kernel" | "process", "require": [...] }`.
pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>, jail: &mut JailOptions) {
    let what = "\"sandbox\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    let mut required = None;
    for property in reader.properties(object, what, &SANDBOX) {
        if property.name.as_str() == "level" {
            match reader.string(property, what) {
                Some("kernel") | None => {}
                Some("process") => *jail = JailOptions::process_only(),
                Some(_) => reader.error(
                    property.value.range(),
                    ConfigErrorKind::Value,
                    "\"level\" in \"sandbox\" must be \"kernel\" or \"process\"",
                ),
            }
            continue;
        }
        let mut layers = Vec::new();
        for (name, range) in reader.strings(property, what) {
            match JailLayer::ALL
                .into_iter()
                .find(|layer| layer.name() == name)
            {
                Some(layer) => layers.push(layer),
                None => reader.error(
                    range,
                    ConfigErrorKind::Value,
                    "\"require\" in \"sandbox\" lists \"landlock\", \"seccomp\" and \"namespaces\"",
                ),
            }
        }
        required = Some((layers, property.value.range()));
    }
    let Some((layers, range)) = required else {
        return;
    };
    if *jail == JailOptions::process_only() && !layers.is_empty() {
        reader.error(
            range,
            ConfigErrorKind::Value,
            "\"level\": \"process\" uses no kernel layer, so \"require\" in \"sandbox\" must be empty",
        );
    } else {
        jail.required = layers;
    }
}
