//! Names for declared types, over the whole catalog.
//!
//! A type keeps the name its author gave it where nothing else has it. Types that are equal under
//! equal names are one type; the function is added to the names of types that differ under one
//! name. The names do not depend on which tools are shown, so a script written against a part
//! of the declarations means the same against a different part.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use crate::ir::TypeId;
use crate::lower::{Definition, Side};
use crate::print::{Remarks, print_type};
use crate::reserved::is_reserved_type;
use crate::text::pascal_case;

/// The maximum number of rounds in which types are compared by their references. Types that are not
/// settled after them are not shared.
const MAX_ROUNDS: usize = 32;

pub(crate) struct TypeNames {
    /// The representative of each type: the type itself or an equal one before it.
    pub(crate) representative: Vec<TypeId>,
    /// The name of each; equal types have equal names.
    pub(crate) name: Vec<String>,
}

pub(crate) fn name_types(definitions: &[Definition], functions: &[&str]) -> TypeNames {
    let wanted: Vec<String> = definitions.iter().map(|d| wanted(d, functions)).collect();
    let class = classes(definitions, &wanted);
    let mut representative: Vec<TypeId> = Vec::with_capacity(definitions.len());
    let mut first_of_class: HashMap<usize, TypeId> = HashMap::new();
    for (id, class) in class.iter().enumerate() {
        representative.push(*first_of_class.entry(*class).or_insert(id));
    }

    let mut by_name: BTreeMap<&str, Vec<TypeId>> = BTreeMap::new();
    for (id, name) in wanted.iter().enumerate() {
        if representative.get(id) == Some(&id) {
            by_name.entry(name).or_default().push(id);
        }
    }
    let mut taken: HashSet<String> = HashSet::new();
    let mut chosen: HashMap<TypeId, String> = HashMap::new();
    let mut contested = Vec::new();
    for (name, ids) in by_name {
        match ids.as_slice() {
            [only] if !is_reserved_type(name) => {
                taken.insert(name.to_owned());
                chosen.insert(*only, name.to_owned());
            }
            _ => contested.extend(ids),
        }
    }
    let mut next: HashMap<String, usize> = HashMap::new();
    for id in contested {
        let Some((definition, wanted)) = definitions.get(id).zip(wanted.get(id)) else {
            continue;
        };
        let function = functions.get(definition.tool).copied().unwrap_or_default();
        let qualified = qualified(function, wanted);
        let mut name = qualified.clone();
        let count = next.entry(qualified.clone()).or_insert(1);
        while is_reserved_type(&name) || !taken.insert(name.clone()) {
            *count += 1;
            name = format!("{qualified}{count}");
        }
        chosen.insert(id, name);
    }
    let name = representative
        .iter()
        .map(|id| chosen.get(id).cloned().unwrap_or_default())
        .collect();
    TypeNames {
        representative,
        name,
    }
}

/// The name a definition would like.
fn wanted(definition: &Definition, functions: &[&str]) -> String {
    if let Some(name) = &definition.wanted_name {
        return name.clone();
    }
    let function = functions.get(definition.tool).copied().unwrap_or_default();
    let what = match (definition.root, definition.side) {
        (true, Side::Input) => "Input",
        (true, Side::Output) => "Output",
        (false, _) => "Part",
    };
    qualified(function, what)
}

fn qualified(function: &str, name: &str) -> String {
    let mut qualified = pascal_case(function);
    if !qualified.starts_with(|c: char| c.is_ascii_alphabetic()) {
        qualified.insert(0, 'T');
    }
    let mut characters = name.chars();
    qualified.extend(characters.next().map(|first| first.to_ascii_uppercase()));
    qualified.push_str(characters.as_str());
    qualified
}

/// Sorts definitions into classes of equal ones: the same wanted name, the same description and the
/// same body, where references in a body are compared by class.
fn classes(definitions: &[Definition], wanted: &[String]) -> Vec<usize> {
    let mut class: Vec<usize> = vec![0; definitions.len()];
    let mut before = class.clone();
    let mut count = 1;
    for _ in 0..MAX_ROUNDS {
        let mut numbers: HashMap<(usize, String), usize> = HashMap::new();
        let mut refined = Vec::with_capacity(class.len());
        for ((definition, wanted), old) in definitions.iter().zip(wanted).zip(&class) {
            let mut text = format!(
                "{wanted}\n{}\n",
                definition.doc.as_ref().map_or("", |doc| &doc.comment)
            );
            print_type(
                &definition.body,
                &mut text,
                Remarks::Comments,
                &|id, text| {
                    // Writing to a string does not fail.
                    let _ = write!(text, "#{}", class.get(id).copied().unwrap_or_default());
                    None
                },
            );
            let fresh = numbers.len();
            refined.push(*numbers.entry((*old, text)).or_insert(fresh));
        }
        let found = numbers.len();
        before = std::mem::replace(&mut class, refined);
        if found == count {
            return class;
        }
        count = found;
    }
    // Deeper than any schema written by hand. A class that may still split refers to a class that
    // split in the last round, and is of the same tool.
    let mut became: HashMap<usize, HashSet<usize>> = HashMap::new();
    for (before, now) in before.iter().zip(&class) {
        became.entry(*before).or_default().insert(*now);
    }
    let of_tools = definitions.iter().zip(&before);
    let apart = of_tools.filter(|(_, class)| became.get(class).is_some_and(|now| now.len() > 1));
    let apart: HashSet<usize> = apart.map(|(definition, _)| definition.tool).collect();
    let next = class.iter().max().map_or(0, |last| last + 1);
    let unshared = |(id, (definition, class)): (TypeId, (&Definition, usize))| {
        if apart.contains(&definition.tool) {
            next + id
        } else {
            class
        }
    };
    let settled = definitions.iter().zip(class).enumerate();
    settled.map(unshared).collect()
}
