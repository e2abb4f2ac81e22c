//! `serve` of a file: how `callgate serve` serves.

use jsonc_parser::ast::ObjectProp;

use super::keys::Keys;
use super::reader::{Reader, name_range};
use super::{Config, http, users};

/// Keys of `serve`.
const SERVE: Keys = Keys {
    ours: &["http", "users"],
    others: &[],
};

/// Reads the section, once the servers are known.
pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>, config: &mut Config) {
    let what = "\"serve\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    for property in reader.properties(object, what, &SERVE) {
        match property.name.as_str() {
            "http" => config.http = http::read(reader, property, what),
            _ => {
                config.users = users::read(reader, property, what);
                users::check(reader, name_range(property), config);
            }
        }
    }
}
