//! The intermediate representation of a schema's types, independent of TypeScript's syntax.
//!
//! Where the two differ, the representation follows JSON Schema and not TypeScript: an object keeps
//! its additional properties as the schema has them, and the printer widens them into a sound index
//! signature.

use std::collections::{HashMap, HashSet};

/// The values an instance may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Type {
    /// Any value.
    #[default]
    Unknown,
    /// No value.
    Never,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// An integer that a number may not hold exactly.
    BigInt,
    /// Any number.
    Number,
    /// Any string.
    String,
    /// One value.
    Literal(Literal),
    /// An array of any length.
    Array(Box<Type>),
    /// An array whose first places have types of their own.
    Tuple(Tuple),
    /// An object.
    Object(Object),
    /// A value of at least one of the members. Built by [`Type::union`].
    Union(Vec<Type>),
    /// A value of all the members. Built by [`Type::intersection`].
    Intersection(Vec<Type>),
    /// A type declared by name.
    Named(TypeId),
}

/// A declared type: its place in the list of them.
pub type TypeId = usize;

/// A single value other than `null`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Literal {
    /// `true` or `false`.
    Boolean(bool),
    /// A number as JSON text.
    Number(String),
    /// A string.
    String(String),
}

/// An array by places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// The types of the first places, in order.
    pub places: Vec<Type>,
    /// The number of places always present; the others may be missing from the end.
    pub required: usize,
    /// The type of every further place; `None` if there is no further place.
    pub rest: Option<Box<Type>>,
}

/// An object by its properties.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Object {
    /// The properties with names, in the schema's order.
    pub properties: Vec<Property>,
    /// The other properties.
    pub additional: Additional,
}

impl Object {
    /// True if the object may hold any other property.
    fn is_open(&self) -> bool {
        match &self.additional {
            Additional::Unmentioned => true,
            Additional::Closed => false,
            Additional::Typed(ty) => **ty == Type::Unknown,
        }
    }
}

/// The properties of an object besides its named ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Additional {
    /// The schema does not mention other properties: they may be present, and are not declared.
    #[default]
    Unmentioned,
    /// No other properties.
    Closed,
    /// Other properties of this type.
    Typed(Box<Type>),
}

/// A property with a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Property {
    /// The key, any string.
    pub name: String,
    /// The type of the value when it is there.
    pub ty: Type,
    /// True if the property may be missing.
    pub optional: bool,
    /// The property's documentation.
    pub doc: Option<Doc>,
}

impl Property {
    /// A property without documentation.
    pub fn new(name: impl Into<String>, ty: Type, optional: bool) -> Self {
        Self {
            name: name.into(),
            ty,
            optional,
            doc: None,
        }
    }
}

/// The documentation of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Doc {
    /// The description and the bounds of the values, as comment text.
    pub comment: String,
    /// The short facts for a signature, such as `default 10`; may be empty.
    pub facts: String,
}

impl Type {
    /// An object that may hold anything.
    pub fn open_object() -> Self {
        Self::Object(Object {
            properties: Vec::new(),
            additional: Additional::Typed(Box::new(Self::Unknown)),
        })
    }

    /// True for an object type that names no member and gives others no type.
    pub fn is_memberless(&self) -> bool {
        let Self::Object(object) = self else {
            return false;
        };
        let has_type = matches!(
            &object.additional,
            Additional::Typed(ty) if !matches!(**ty, Self::Unknown | Self::Never)
        );
        object.properties.is_empty() && !has_type
    }

    /// The union of `members`, in order, flattened and without repetitions: [`Type::Unknown`]
    /// swallows the others and no member at all is [`Type::Never`].
    pub fn union(members: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for member in members {
            match member {
                Self::Unknown => return Self::Unknown,
                Self::Never => {}
                Self::Union(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let mut flat = without_repetitions(flat);
        if flat.contains(&Self::Number) {
            flat.retain(|member| *member != Self::Integer);
        }
        match flat.len() {
            0 => Self::Never,
            1 => flat.pop().unwrap_or(Self::Never),
            _ => Self::Union(flat),
        }
    }

    /// The intersection of `members`, in order, flattened, without repetitions, with plain choices
    /// merged and open objects merged: [`Type::Never`] swallows the others and no member at all is
    /// [`Type::Unknown`].
    pub fn intersection(members: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for member in members {
            match member {
                Self::Never => return Self::Never,
                Self::Unknown => {}
                Self::Intersection(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let mut flat = without_repetitions(flat);
        if flat.contains(&Self::Integer) {
            flat.retain(|member| *member != Self::Number);
        }
        let flat = &mut with_one_object(with_one_choice(flat));
        if flat.contains(&Self::Never) {
            return Self::Never;
        }
        match flat.len() {
            0 => Self::Unknown,
            1 => flat.pop().unwrap_or(Self::Unknown),
            _ => Self::Intersection(std::mem::take(flat)),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Boolean
                | Self::Integer
                | Self::BigInt
                | Self::Number
                | Self::String
                | Self::Literal(_)
        )
    }

    /// True if this type has every value of the other plain type.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Boolean, Self::Literal(Literal::Boolean(_)))
            | (Self::Number, Self::Integer | Self::BigInt)
            | (Self::Integer, Self::BigInt)
            | (Self::Number | Self::Integer, Self::Literal(Literal::Number(_)))
            | (Self::String, Self::Literal(Literal::String(_))) => true,
            (one, other) => one == other,
        }
    }

    /// True if there is an object with named properties in it, other than in declared types.
    pub(crate) fn has_properties(&self) -> bool {
        match self {
            Self::Object(object) if !object.properties.is_empty() => true,
            _ => self.children().into_iter().any(Self::has_properties),
        }
    }

    /// The types directly inside this one.
    pub fn children(&self) -> Vec<&Self> {
        match self {
            Self::Array(item) => vec![item],
            Self::Tuple(tuple) => tuple.places.iter().chain(tuple.rest.as_deref()).collect(),
            Self::Object(object) => {
                let additional = match &object.additional {
                    Additional::Typed(ty) => Some(&**ty),
                    Additional::Unmentioned | Additional::Closed => None,
                };
                let named = object.properties.iter().map(|property| &property.ty);
                named.chain(additional).collect()
            }
            Self::Union(members) | Self::Intersection(members) => members.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Calls `with` for this type and every type inside it, in order.
    pub(crate) fn visit<'t>(&'t self, with: &mut impl FnMut(&'t Self)) {
        with(self);
        for inner in self.children() {
            inner.visit(with);
        }
    }

    /// Every declared type that this one mentions, each once, in the order of first mention.
    pub fn mentions(&self) -> Vec<TypeId> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        self.visit(&mut |ty| {
            if let Self::Named(id) = ty
                && seen.insert(*id)
            {
                found.push(*id);
            }
        });
        found
    }

    /// The declared types that stand where a value of this one itself would,
    /// not inside it: a name that reaches itself this way means nothing.
    pub fn aliases(&self) -> Vec<TypeId> {
        let mut found = Vec::new();
        let mut open = vec![self];
        while let Some(ty) = open.pop() {
            match ty {
                Self::Named(id) => found.push(*id),
                Self::Union(members) | Self::Intersection(members) => {
                    open.extend(members.iter().rev());
                }
                _ => {}
            }
        }
        found
    }
}

/// Keeps the first of equal members.
fn without_repetitions(mut members: Vec<Type>) -> Vec<Type> {
    let mut seen = HashSet::with_capacity(members.len());
    let is_first: Vec<bool> = members.iter().map(|member| seen.insert(member)).collect();
    let mut is_first = is_first.into_iter();
    members.retain(|_| is_first.next().unwrap_or(true));
    members
}

/// Merges all members that are values, kinds of values without parts, or unions of these: the
/// result has the values common to all of them, and stands first.
fn with_one_choice(members: Vec<Type>) -> Vec<Type> {
    let is_plain = |member: &Type| match member {
        Type::Union(members) => members.iter().all(Type::is_plain),
        other => other.is_plain(),
    };
    if members.iter().filter(|member| is_plain(member)).count() < 2 {
        return members;
    }
    let (plain, mut others): (Vec<_>, Vec<_>) = members.into_iter().partition(is_plain);
    let both = |one: Type, other: Type| {
        let choices = |ty: Type| match ty {
            Type::Union(members) => members,
            other => vec![other],
        };
        let (one, other) = (choices(one), choices(other));
        let first = one.iter().filter(covered(&other));
        let second = other.iter().filter(covered(&one));
        Type::union(first.chain(second).cloned().collect::<Vec<_>>())
    };
    others.splice(0..0, plain.into_iter().reduce(both));
    others
}

/// Finds whether one of these plain types covers a type, without comparing each with each.
fn covered<'t>(by: &'t [Type]) -> impl Fn(&&'t Type) -> bool {
    let is_kind = |ty: &&Type| {
        matches!(
            ty,
            Type::Boolean | Type::Number | Type::Integer | Type::String
        )
    };
    let kinds: Vec<&Type> = by.iter().filter(is_kind).collect();
    let all: HashSet<&Type> = by.iter().collect();
    move |ty| all.contains(*ty) || kinds.iter().any(|kind| kind.covers(ty))
}

/// Merges all objects that leave other properties open into one object, at the place of the first.
fn with_one_object(members: Vec<Type>) -> Vec<Type> {
    let is_open = |member: &Type| match member {
        Type::Object(object) => object.is_open(),
        _ => false,
    };
    if members.iter().filter(|member| is_open(member)).count() < 2 {
        return members;
    }
    let mut one = Object::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut others = Vec::with_capacity(members.len());
    let mut place = None;
    for member in members {
        let object = match member {
            Type::Object(object) if object.is_open() => object,
            other => {
                others.push(other);
                continue;
            }
        };
        place.get_or_insert(others.len());
        if object.additional != Additional::Unmentioned {
            one.additional = object.additional;
        }
        for property in object.properties {
            let known = places.get(&property.name);
            match known.and_then(|known| one.properties.get_mut(*known)) {
                Some(known) => {
                    let ty = std::mem::replace(&mut known.ty, Type::Unknown);
                    known.ty = Type::intersection([ty, property.ty]);
                    known.optional &= property.optional;
                    known.doc = known.doc.take().or(property.doc);
                }
                None => {
                    places.insert(property.name.clone(), one.properties.len());
                    one.properties.push(property);
                }
            }
        }
    }
    others.insert(place.unwrap_or_default(), Type::Object(one));
    others
}
