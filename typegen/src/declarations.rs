//! The declarations of a catalog: made once, shown whole or in part.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use crate::degradation::{Degradation, Reason};
use crate::ir::{Additional, Type, TypeId};
use crate::lower::{Definition, LoweredTool, lower_tool};
use crate::naming::{TypeNames, name_types};
use crate::print::print_body;
use crate::text::doc_comment;

/// Bytes of a function's or a type's doc comment.
const MAX_DOC: usize = 4_000;
/// Bytes of one tool's declarations, the types it refers to included once.
const MAX_TOOL_TEXT: usize = 128 * 1024;

/// A tool, as far as its declaration goes.
#[derive(Debug, Clone, Copy)]
pub struct ToolSchema<'a> {
    /// The server as it is configured.
    pub server: &'a str,
    /// The tool as the server calls it.
    pub tool: &'a str,
    /// The function it becomes; from [`crate::names::assign`].
    pub function: &'a str,
    /// A name for people.
    pub title: Option<&'a str>,
    /// What it does.
    pub description: Option<&'a str>,
    /// The JSON Schema of its arguments.
    pub input: &'a Value,
    /// The JSON Schema of its structured result.
    pub output: Option<&'a Value>,
}

/// Makes the declarations of all tools of a catalog. It takes any JSON for a
/// schema: what cannot be expressed is `unknown` and reported.
pub fn generate(tools: &[ToolSchema<'_>]) -> Declarations {
    let mut definitions = Vec::new();
    let mut lowered = Vec::with_capacity(tools.len());
    for (index, tool) in tools.iter().enumerate() {
        lowered.push(lower_tool(
            (tool.server, tool.tool),
            index,
            tool.input,
            tool.output,
            &mut definitions,
        ));
    }
    let functions: Vec<&str> = tools.iter().map(|tool| tool.function).collect();
    let names = name_types(&definitions, &functions);
    let types = definitions
        .iter()
        .enumerate()
        .map(|(id, definition)| declare_type(id, definition, &names))
        .collect();

    let mut declarations = Declarations {
        types,
        functions: Vec::with_capacity(tools.len()),
        degradations: Vec::new(),
    };
    for (tool, lowered) in tools.iter().zip(lowered) {
        declarations.add(tool, lowered, &definitions, &names);
    }
    declarations
}

/// TypeScript declarations of the tools of a catalog.
#[derive(Debug, Clone, Default)]
pub struct Declarations {
    types: Vec<Declared>,
    functions: Vec<Function>,
    degradations: Vec<Degradation>,
}

impl Declarations {
    /// The declarations of the functions that `select` takes, and of the types
    /// those need, types first. Empty when it takes none.
    pub fn text(&self, select: impl Fn(&str) -> bool) -> String {
        let chosen: Vec<&Function> = self
            .functions
            .iter()
            .filter(|function| select(&function.name))
            .collect();
        let mut text = String::new();
        for id in self.reachable(chosen.iter().flat_map(|f| f.mentions.iter().copied())) {
            if let Some(declared) = self.types.get(id) {
                text.push_str(&declared.text);
            }
        }
        for function in chosen {
            text.push_str(&function.text);
        }
        text
    }

    /// Where declared types are wider than their schemas, tool by tool.
    pub fn degradations(&self) -> &[Degradation] {
        &self.degradations
    }

    fn add(
        &mut self,
        tool: &ToolSchema<'_>,
        lowered: LoweredTool,
        definitions: &[Definition],
        names: &TypeNames,
    ) {
        let function = declare_function(tool, &lowered.input, &lowered.output, definitions, names);
        self.degradations.extend(lowered.degradations);
        let length = self
            .reachable(function.mentions.iter().copied())
            .iter()
            .filter_map(|id| self.types.get(*id))
            .map(|declared| declared.text.len())
            .fold(function.text.len(), usize::saturating_add);
        if length <= MAX_TOOL_TEXT {
            self.functions.push(function);
            return;
        }
        let input = Type::open_object();
        self.functions.push(declare_function(
            tool,
            &input,
            &Type::Unknown,
            definitions,
            names,
        ));
        self.degradations.push(Degradation {
            server: tool.server.to_owned(),
            tool: tool.tool.to_owned(),
            pointer: String::new(),
            reason: Reason::TooLong {
                limit: MAX_TOOL_TEXT,
            },
        });
    }

    /// The types reached from some, each once, nearest first.
    fn reachable(&self, from: impl Iterator<Item = TypeId>) -> Vec<TypeId> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        let mut open: VecDeque<TypeId> = from.collect();
        while let Some(id) = open.pop_front() {
            if !seen.insert(id) {
                continue;
            }
            found.push(id);
            if let Some(declared) = self.types.get(id) {
                open.extend(declared.mentions.iter().copied());
            }
        }
        found
    }
}

/// A type declaration.
#[derive(Debug, Clone)]
struct Declared {
    text: String,
    mentions: Vec<TypeId>,
}

/// A function declaration.
#[derive(Debug, Clone)]
struct Function {
    name: String,
    text: String,
    mentions: Vec<TypeId>,
}

fn declare_type(id: TypeId, definition: &Definition, names: &TypeNames) -> Declared {
    // An alias, not an interface: values of interface types do not fit the index
    // signatures that open objects have.
    let doc = doc_comment(definition.doc.as_deref().unwrap_or(""), 0, MAX_DOC);
    Declared {
        text: format!(
            "{doc}type {} = {};\n",
            name_of(names, id),
            print_body(&definition.body, &|id| name_of(names, id))
        ),
        mentions: mentions(&definition.body, names),
    }
}

fn declare_function(
    tool: &ToolSchema<'_>,
    input: &Type,
    output: &Type,
    definitions: &[Definition],
    names: &TypeNames,
) -> Function {
    let description = [tool.description, tool.title]
        .into_iter()
        .flatten()
        .find(|text| !text.trim().is_empty());
    let mark = if may_be_empty(input, definitions, 0) {
        "?"
    } else {
        ""
    };
    let name = |id| name_of(names, id);
    let text = format!(
        "{}declare function {}(input{mark}: {}): Promise<{}>;\n",
        doc_comment(description.unwrap_or(""), 0, MAX_DOC),
        tool.function,
        print_body(input, &name),
        print_body(output, &name),
    );
    let mut mentioned = mentions(input, names);
    mentioned.extend(mentions(output, names));
    Function {
        name: tool.function.to_owned(),
        text,
        mentions: mentioned,
    }
}

/// Whether an object without properties is one of the type, so that the call
/// needs no argument.
fn may_be_empty(ty: &Type, definitions: &[Definition], depth: usize) -> bool {
    if depth > 8 {
        return false;
    }
    match ty {
        Type::Unknown => true,
        Type::Object(object) => {
            object.properties.iter().all(|property| property.optional)
                && object.additional != Additional::Typed(Box::new(Type::Never))
        }
        Type::Named(id) => definitions
            .get(*id)
            .is_some_and(|definition| may_be_empty(&definition.body, definitions, depth + 1)),
        Type::Union(members) => members
            .iter()
            .any(|member| may_be_empty(member, definitions, depth + 1)),
        Type::Intersection(members) => members
            .iter()
            .all(|member| may_be_empty(member, definitions, depth + 1)),
        _ => false,
    }
}

fn name_of(names: &TypeNames, id: TypeId) -> String {
    names.name.get(id).cloned().unwrap_or_default()
}

fn mentions(ty: &Type, names: &TypeNames) -> Vec<TypeId> {
    ty.mentions()
        .into_iter()
        .filter_map(|id| names.representative.get(id).copied())
        .collect()
}
