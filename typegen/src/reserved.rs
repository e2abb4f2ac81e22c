//! Names that no generated function or type may take: words of the language, and names that the
//! sandbox and the checker's library already declare.

/// True if `name` cannot be the name of a global function in a script.
pub(crate) fn is_reserved_value(name: &str) -> bool {
    is_line_of(WORDS, name) || is_line_of(GLOBALS, name) || OBJECT_MEMBERS.contains(&name)
}

/// True if `name` cannot be the name of a type declared beside the script.
pub(crate) fn is_reserved_type(name: &str) -> bool {
    is_reserved_value(name) || is_line_of(TYPES, name)
}

fn is_line_of(list: &str, name: &str) -> bool {
    list.lines().any(|line| line == name)
}

/// Members every object inherits. A global function of such a name would hide the inherited one,
/// and TypeScript takes an optional property of such a name for always present.
pub(crate) const OBJECT_MEMBERS: &[&str] = &[
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// Reserved words, strict-mode and contextual words included, and the names of
/// TypeScript's own types.
const WORDS: &str = include_str!("reserved/words.txt");

/// Values that exist in the sandbox before any stub does.
const GLOBALS: &str = include_str!("reserved/globals.txt");

/// Types of the ES library and of the web types the checker declares that are not values as well.
const TYPES: &str = include_str!("reserved/types.txt");

#[cfg(test)]
mod tests {
    use super::{is_reserved_type, is_reserved_value};

    #[test]
    fn reserved_values_and_types_are_distinguished() {
        let check = |name: &str, value: bool, ty: bool| {
            assert_eq!(
                (is_reserved_value(name), is_reserved_type(name)),
                (value, ty),
                "{name}"
            );
        };
        check("delete", true, true);
        check("then", true, true);
        check("__proto__", true, true);
        check("console", true, true);
        check("mcp", true, true);
        check("URL", true, true);
        check("Record", false, true);
        check("WeakMapConstructor", false, true);
        check("BigIntToLocaleStringOptions", false, true);
        check("LogEntry", false, false);
        check("logging_getLogs", false, false);
    }
}
