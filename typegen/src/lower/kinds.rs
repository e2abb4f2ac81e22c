//! Sets of JSON's kinds of values: the possible kinds of an instance.

use serde_json::Value;

use crate::ir::Type;

/// A set of kinds. Integers are apart from other numbers, so that `integer` is a part of `number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    pub(super) const INTEGER: Self = Self(1 << 2);
    /// Numbers that are not integers.
    pub(super) const FRACTION: Self = Self(1 << 3);
    pub(super) const STRING: Self = Self(1 << 4);
    pub(super) const ARRAY: Self = Self(1 << 5);
    pub(super) const OBJECT: Self = Self(1 << 6);
    pub(super) const ALL: Self = Self((1 << 7) - 1);

    /// The kinds a name under `type` stands for.
    pub(super) fn of_type(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::INTEGER.or(Self::FRACTION),
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    /// The kinds that a value of `type` stands for, if it is one.
    pub(super) fn of_types(value: &Value) -> Option<Self> {
        type_names(value)
            .iter()
            .try_fold(Self::NONE, |kinds, name| {
                Some(kinds.or(Self::of_type(name.as_str()?)?))
            })
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of this set that are not in the other.
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True if the sets meet.
    pub(super) fn has(self, other: Self) -> bool {
        self.and(other) != Self::NONE
    }
}

/// The names in a value of `type`.
pub(super) fn type_names(value: &Value) -> &[Value] {
    match value {
        Value::Array(names) => names,
        one => std::slice::from_ref(one),
    }
}

/// Every value of some kinds.
pub(super) fn any_of(kinds: Kinds) -> Type {
    if kinds == Kinds::ALL {
        return Type::Unknown;
    }
    let mut members = Vec::new();
    if kinds.has(Kinds::STRING) {
        members.push(Type::String);
    }
    if kinds.has(Kinds::FRACTION) {
        members.push(Type::Number);
    } else if kinds.has(Kinds::INTEGER) {
        members.push(Type::Integer);
    }
    if kinds.has(Kinds::BOOLEAN) {
        members.push(Type::Boolean);
    }
    if kinds.has(Kinds::OBJECT) {
        members.push(Type::open_object());
    }
    if kinds.has(Kinds::ARRAY) {
        members.push(Type::Array(Box::new(Type::Unknown)));
    }
    if kinds.has(Kinds::NULL) {
        members.push(Type::Null);
    }
    Type::union(members)
}
