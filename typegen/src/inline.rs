//! Decides if a definition keeps its name or is inlined where it is used.
//!
//! A name costs a line and a look elsewhere, so it has to earn them. It does for a type that refers
//! to itself, for one that is used twice, and for an object (or a choice between objects) that its
//! author named: a script may want to use its name. All of it is decided tool by tool, so
//! that a declaration does not depend on the rest of the catalog.

use std::collections::{HashMap, HashSet};

use crate::ir::{Additional, Doc, Object, Property, Tuple, Type, TypeId};
use crate::lower::{Definition, LoweredTool};

/// Definitions inside definitions that are put in their place; the next one keeps its name.
const MAX_NESTED: usize = 8;
/// The suffixes that generators append to a tool's name to title its schemas.
const ROOT_ENDINGS: &[&str] = &[
    "",
    "args",
    "arguments",
    "input",
    "output",
    "params",
    "parameters",
    "request",
    "response",
    "result",
    "schema",
    "dictoutput",
    "inputschema",
    "outputschema",
];

/// A tool's input and output types after inlining.
pub(crate) struct SettledTool {
    pub(crate) input: Type,
    pub(crate) output: Type,
    /// The comment on the input, if its type has no name.
    pub(crate) input_doc: Option<Doc>,
    /// The comment on the result, if its type has no name.
    pub(crate) output_doc: Option<Doc>,
}

/// Settles one tool with the definitions `own`; a definition that keeps its name is added to
/// `definitions`.
pub(crate) fn settle(
    tool: &str,
    lowered: &LoweredTool,
    own: Vec<Definition>,
    definitions: &mut Vec<Definition>,
) -> SettledTool {
    let mut settling = Settling {
        named: named(tool, lowered, &own),
        own,
        place: HashMap::new(),
        open: Vec::new(),
        definitions,
    };
    let (input, input_doc) = settling.root(&lowered.input);
    let (output, output_doc) = settling.root(&lowered.output);
    // Naming a type may find more that need one.
    while let Some(id) = settling.open.pop() {
        let Some(definition) = settling.own.get(id).cloned() else {
            continue;
        };
        let settled = Definition {
            body: settling.ty(&definition.body, 0),
            ..definition
        };
        let place = settling.place.get(&id).copied().unwrap_or_default();
        set(settling.definitions, place, settled);
    }
    SettledTool {
        input,
        output,
        input_doc,
        output_doc,
    }
}

/// The state of settling one tool's definitions.
struct Settling<'o> {
    own: Vec<Definition>,
    named: Vec<bool>,
    /// The index of each kept definition in the list of all tools.
    place: HashMap<TypeId, TypeId>,
    /// Kept definitions whose bodies are still to be settled.
    open: Vec<TypeId>,
    /// The list of all tools.
    definitions: &'o mut Vec<Definition>,
}

impl Settling<'_> {
    /// Settles a whole schema, and returns its comment if no declaration carries it.
    fn root(&mut self, ty: &Type) -> (Type, Option<Doc>) {
        let inlined = match ty {
            Type::Named(id) if !self.keeps_name(*id) => self.own.get(*id),
            _ => None,
        };
        let doc = inlined.and_then(|definition| definition.doc.clone());
        (self.ty(ty, 0), doc)
    }

    fn keeps_name(&self, id: TypeId) -> bool {
        self.named.get(id).copied().unwrap_or(true)
    }

    /// A type with definitions put in their places, `nested` of them around it.
    fn ty(&mut self, ty: &Type, nested: usize) -> Type {
        if ty.mentions().is_empty() {
            return ty.clone();
        }
        match ty {
            Type::Named(id) => match self.own.get(*id) {
                Some(definition) if !self.keeps_name(*id) && nested < MAX_NESTED => {
                    let body = definition.body.clone();
                    self.ty(&body, nested + 1)
                }
                _ => Type::Named(*self.place.entry(*id).or_insert_with(|| {
                    self.open.push(*id);
                    self.definitions.push(Definition::default());
                    self.definitions.len() - 1
                })),
            },
            Type::Array(item) => Type::Array(Box::new(self.ty(item, nested))),
            Type::Tuple(tuple) => Type::Tuple(Tuple {
                places: tuple.places.iter().map(|ty| self.ty(ty, nested)).collect(),
                required: tuple.required,
                rest: tuple
                    .rest
                    .as_deref()
                    .map(|ty| Box::new(self.ty(ty, nested))),
            }),
            Type::Object(object) => Type::Object(self.object(object, nested)),
            Type::Union(members) => Type::union(
                members
                    .iter()
                    .map(|ty| self.ty(ty, nested))
                    .collect::<Vec<_>>(),
            ),
            Type::Intersection(members) => Type::intersection(
                members
                    .iter()
                    .map(|ty| self.ty(ty, nested))
                    .collect::<Vec<_>>(),
            ),
            Type::Unknown
            | Type::Never
            | Type::Null
            | Type::Boolean
            | Type::Integer
            | Type::BigInt
            | Type::Number
            | Type::String
            | Type::Literal(_) => ty.clone(),
        }
    }

    fn object(&mut self, object: &Object, nested: usize) -> Object {
        let properties = object.properties.iter().map(|property| Property {
            name: property.name.clone(),
            doc: self.with_inner_comment(property, nested),
            ty: self.ty(&property.ty, nested),
            optional: property.optional,
        });
        Object {
            properties: properties.collect(),
            additional: match &object.additional {
                Additional::Typed(ty) => Additional::Typed(Box::new(self.ty(ty, nested))),
                other => other.clone(),
            },
        }
    }

    /// A property's comment, joined with the comment of the inlined definition that it holds.
    fn with_inner_comment(&self, property: &Property, nested: usize) -> Option<Doc> {
        let Some((id, label)) = held(&property.ty) else {
            return property.doc.clone();
        };
        let inner = match self.own.get(id) {
            Some(definition) if !self.keeps_name(id) && nested < MAX_NESTED => &definition.doc,
            _ => &None,
        };
        let Some(inner) = inner else {
            return property.doc.clone();
        };
        let Doc { comment, facts } = property.doc.clone().unwrap_or_default();
        let joined = |outer: String, inner: &str, separator: &str| match outer.as_str() {
            "" if inner.is_empty() => outer,
            "" => format!("{label}{inner}"),
            _ if outer.contains(inner) => outer,
            _ => format!("{outer}{separator}{label}{inner}"),
        };
        Some(Doc {
            comment: joined(comment, &inner.comment, "\n"),
            facts: joined(facts, &inner.facts, ", "),
        })
    }
}

/// The definition that is a property's type, apart from `null` and arrays.
fn held(ty: &Type) -> Option<(TypeId, &'static str)> {
    match ty {
        Type::Named(id) => Some((*id, "")),
        Type::Array(item) => held(item).map(|(id, _)| (id, "each: ")),
        Type::Union(members) => match members.as_slice() {
            [ty, Type::Null] | [Type::Null, ty] => held(ty),
            _ => None,
        },
        _ => None,
    }
}

fn named(tool: &str, lowered: &LoweredTool, own: &[Definition]) -> Vec<bool> {
    let mut uses = vec![0_usize; own.len()];
    let mut has_place = vec![true; own.len()];
    let mut seen = HashSet::new();
    let mut open = vec![&lowered.input, &lowered.output];
    for root in [&lowered.input, &lowered.output] {
        count(root, true, &mut uses, &mut has_place);
    }
    while let Some(ty) = open.pop() {
        for id in ty.mentions() {
            if let Some(definition) = own.get(id)
                && seen.insert(id)
            {
                count(&definition.body, false, &mut uses, &mut has_place);
                open.push(&definition.body);
            }
        }
    }
    let recursive = recursive(own);
    let shared = equal_elsewhere(own, &uses);
    own.iter()
        .enumerate()
        .map(|(id, definition)| {
            let flag = |flags: &[bool]| flags.get(id).copied().unwrap_or(true);
            let uses = uses.get(id).copied().unwrap_or_default();
            let structured = definition.wanted_name.is_some() && is_structured(&definition.body);
            let label = definition.root && is_label(definition, tool);
            let homeless = definition.doc.is_some() && !flag(&has_place);
            flag(&recursive)
                || uses > 1
                || flag(&shared)
                || (structured && !label)
                || (homeless && !definition.root)
        })
        .collect()
}

/// Counts a type's mentions, and clears `has_place` for a mention without a place for a comment.
fn count(ty: &Type, root: bool, uses: &mut [usize], has_place: &mut [bool]) {
    let mut open = vec![(ty, root)];
    while let Some((ty, told)) = open.pop() {
        match ty {
            Type::Named(id) => {
                if let (Some(uses), Some(there)) = (uses.get_mut(*id), has_place.get_mut(*id)) {
                    *uses += 1;
                    *there &= told;
                }
            }
            Type::Object(object) => {
                for property in &object.properties {
                    match held(&property.ty) {
                        Some((id, _)) => {
                            if let Some(uses) = uses.get_mut(id) {
                                *uses += 1;
                            }
                        }
                        None => open.push((&property.ty, false)),
                    }
                }
                if let Additional::Typed(ty) = &object.additional {
                    open.push((ty, false));
                }
            }
            other => open.extend(other.children().into_iter().map(|ty| (ty, false))),
        }
    }
}

/// The definitions on a cycle or on a path between cycles: the rest after dropping, repeatedly, all
/// that mention none of the rest or are mentioned by none.
fn recursive(own: &[Definition]) -> Vec<bool> {
    let mentions: Vec<Vec<TypeId>> = own.iter().map(|d| d.body.mentions()).collect();
    let mut mentioned_by = vec![Vec::new(); own.len()];
    for (id, targets) in mentions.iter().enumerate() {
        for target in targets {
            if let Some(sources) = mentioned_by.get_mut(*target) {
                sources.push(id);
            }
        }
    }
    let mut left = vec![true; own.len()];
    for (targets, sources) in [(&mentions, &mentioned_by), (&mentioned_by, &mentions)] {
        let is_left = |left: &[bool], id: TypeId| left.get(id) == Some(&true);
        let count = |ids: &Vec<TypeId>| ids.iter().filter(|id| is_left(&left, **id)).count();
        let mut counts: Vec<usize> = targets.iter().map(count).collect();
        let ids = counts.iter().enumerate();
        let mut open: Vec<TypeId> = ids.filter(|(_, n)| **n == 0).map(|(id, _)| id).collect();
        open.retain(|id| is_left(&left, *id));
        while let Some(id) = open.pop() {
            set(&mut left, id, false);
            for source in sources.get(id).into_iter().flatten() {
                if let Some(count) = counts.get_mut(*source).filter(|_| is_left(&left, *source)) {
                    *count -= 1;
                    if *count == 0 {
                        open.push(*source);
                    }
                }
            }
        }
    }
    left
}

fn set<T>(values: &mut [T], index: usize, value: T) {
    if let Some(slot) = values.get_mut(index) {
        *slot = value;
    }
}

/// The definitions with an equal one in the same tool, such as one in both of its schemas.
fn equal_elsewhere(own: &[Definition], uses: &[usize]) -> Vec<bool> {
    let mut by_name: HashMap<&str, Vec<TypeId>> = HashMap::new();
    for (id, definition) in own.iter().enumerate() {
        if let Some(name) = &definition.wanted_name
            && uses.get(id).is_some_and(|uses| *uses > 0)
        {
            by_name.entry(name).or_default().push(id);
        }
    }
    let mut equal = vec![false; own.len()];
    for ids in by_name.into_values() {
        // Further ones of the same name get a number, and are not shared.
        if let [a, b] = ids.as_slice()
            && let (Some(first), Some(second)) = (own.get(*a), own.get(*b))
            && first.body == second.body
        {
            set(&mut equal, *a, true);
            set(&mut equal, *b, true);
        }
    }
    equal
}

/// True if a type is an object with properties, or contains one.
fn is_structured(ty: &Type) -> bool {
    match ty {
        Type::Object(object) => !object.properties.is_empty(),
        Type::Union(members) | Type::Intersection(members) => members
            .iter()
            .any(|member| matches!(member, Type::Named(_)) || is_structured(member)),
        _ => false,
    }
}

/// True if the name of a whole schema only repeats its tool's name.
fn is_label(definition: &Definition, tool: &str) -> bool {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    let name = plain(definition.wanted_name.as_deref().unwrap_or_default());
    let ending = name.strip_prefix(&plain(tool)).unwrap_or(&name);
    ROOT_ENDINGS.contains(&ending)
}
