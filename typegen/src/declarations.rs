//! The declarations of a catalog: made once, shown whole or in part.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use serde_json::Value;

use crate::comments::{Comments, LEGEND, push_comment};
use crate::degradation::{Degradation, Reason};
use crate::detail::Detail;
use crate::empty::may_be_empty;
use crate::inline::{SettledTool, settle};
use crate::ir::{Type, TypeId};
use crate::lower::{Definition, lower_tool};
use crate::naming::{TypeNames, name_types};
use crate::print::print_type;
use crate::text::{comment_text, prefix};

/// Bytes of a function's comment.
const MAX_COMMENT: usize = 4_000;
/// Characters of a summary.
const MAX_SUMMARY: usize = 100;
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
    let mut settled = Vec::with_capacity(tools.len());
    let mut degradations = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let mut own = Vec::new();
        let mut lowered = lower_tool(
            (tool.server, tool.tool),
            index,
            tool.input,
            tool.output,
            &mut own,
        );
        degradations.push(std::mem::take(&mut lowered.degradations));
        settled.push(settle(tool.tool, &lowered, own, &mut definitions));
    }
    let functions: Vec<&str> = tools.iter().map(|tool| tool.function).collect();
    let names = name_types(&definitions, &functions);
    let mut functions = Vec::with_capacity(tools.len());
    for ((tool, settled), degradations) in tools.iter().zip(settled).zip(&mut degradations) {
        functions.push(function(tool, settled, &definitions, &names, degradations));
    }
    let types = definitions
        .into_iter()
        .zip(names.name.iter().cloned())
        .map(|(definition, name)| Declared {
            name,
            mentions: mentions(&definition.body, &names),
            comment: definition.doc.unwrap_or_default(),
            body: definition.body,
        })
        .collect();
    let by_name = functions.iter().map(|function| function.name.clone());
    let mut declarations = Declarations {
        types,
        by_name: by_name.zip(0..).collect(),
        functions,
        degradations: Vec::new(),
    };
    declarations.bound(tools, degradations);
    declarations
}

/// TypeScript declarations of the tools of a catalog.
#[derive(Debug, Clone, Default)]
pub struct Declarations {
    types: Vec<Declared>,
    functions: Vec<Function>,
    by_name: HashMap<String, usize>,
    degradations: Vec<Degradation>,
}

impl Declarations {
    /// What `detail` says of the functions that `select` takes, in the order of
    /// the tools: lines of names, or declarations with those of the types they
    /// need before them. Empty when it takes none.
    ///
    /// A property's comment that stands before in the text is not repeated; the
    /// first line says so where it matters.
    pub fn text(&self, detail: Detail, select: impl Fn(&str) -> bool) -> String {
        let taken = |function: &&Function| select(&function.name);
        self.write(detail, self.functions.iter().filter(taken).collect())
    }

    /// As [`Declarations::text`], of these functions in this order; names that
    /// are none are passed over.
    pub fn text_of(&self, detail: Detail, functions: &[&str]) -> String {
        let found = |name: &&str| self.functions.get(*self.by_name.get(*name)?);
        self.write(detail, functions.iter().filter_map(found).collect())
    }

    fn write(&self, detail: Detail, chosen: Vec<&Function>) -> String {
        let mut text = String::new();
        let mut comments = match detail {
            Detail::Name | Detail::Summary => {
                for function in chosen {
                    text.push_str(&function.name);
                    if detail == Detail::Summary && !function.summary.is_empty() {
                        text.push_str(": ");
                        text.push_str(&function.summary);
                    }
                    text.push('\n');
                }
                return text;
            }
            Detail::Signature => Comments::None,
            Detail::Full => Comments::new(),
        };
        for id in self.reachable(chosen.iter().flat_map(|f| f.mentions.iter().copied())) {
            if let Some(declared) = self.types.get(id) {
                self.declare_type(declared, &mut text, &mut comments);
            }
        }
        for function in chosen {
            self.declare_function(function, &mut text, &mut comments);
        }
        if comments.any_omitted() {
            text.insert_str(0, LEGEND);
        }
        text
    }

    /// Declarations to check a script against: in full, but without comments, the functions and the
    /// types that `names` has, and what those need; every other function in one line that takes
    /// anything and gives anything, so that its name is known. `None` declares all in full. A
    /// function that `known` does not take is not declared at all.
    ///
    /// For a script that has no names but these, it makes no difference that the
    /// rest is not declared.
    pub fn for_script(
        &self,
        names: Option<&HashSet<&str>>,
        known: impl Fn(&str) -> bool,
    ) -> String {
        let has = |name: &str| names.is_none_or(|names| names.contains(name));
        let all = self.reachable(
            self.functions
                .iter()
                .flat_map(|f| f.mentions.iter().copied()),
        );
        let named = all
            .into_iter()
            .filter(|id| self.types.get(*id).is_some_and(|ty| has(&ty.name)));
        let (chosen, others): (Vec<&Function>, Vec<&Function>) = self
            .functions
            .iter()
            .filter(|function| known(&function.name))
            .partition(|function| has(&function.name));
        let needed = chosen.iter().flat_map(|f| f.mentions.iter().copied());
        let mut text = String::new();
        for id in self.reachable(named.chain(needed)) {
            if let Some(declared) = self.types.get(id) {
                self.declare_type(declared, &mut text, &mut Comments::None);
            }
        }
        for function in chosen {
            self.declare_function(function, &mut text, &mut Comments::None);
        }
        for function in others {
            text.push_str("declare function ");
            text.push_str(&function.name);
            text.push_str("(input?: any, options?: CallOptions): Promise<any>;\n");
        }
        text
    }

    /// The first line of what a function's tool does, if its server says so.
    pub fn summary(&self, function: &str) -> Option<&str> {
        let found = self.functions.get(*self.by_name.get(function)?)?;
        (!found.summary.is_empty()).then_some(found.summary.as_str())
    }

    /// Where declarations say less than schemas, tool by tool.
    pub fn degradations(&self) -> &[Degradation] {
        &self.degradations
    }

    /// Widens what would be too long, and lists the degradations.
    fn bound(&mut self, tools: &[ToolSchema<'_>], degradations: Vec<Vec<Degradation>>) {
        let mut scratch = String::new();
        let mut length = |print: &dyn Fn(&mut String)| {
            scratch.clear();
            print(&mut scratch);
            scratch.len()
        };
        let types: Vec<usize> = self
            .types
            .iter()
            .map(|ty| length(&|text| self.declare_type(ty, text, &mut Comments::Each)))
            .collect();
        let too_long: Vec<bool> = self
            .functions
            .iter()
            .map(|function| {
                let own =
                    length(&|text| self.declare_function(function, text, &mut Comments::Each));
                self.reachable(function.mentions.iter().copied())
                    .into_iter()
                    .filter_map(|id| types.get(id).copied())
                    .fold(own, usize::saturating_add)
                    > MAX_TOOL_TEXT
            })
            .collect();
        for (((tool, function), too_long), degradations) in tools
            .iter()
            .zip(&mut self.functions)
            .zip(too_long)
            .zip(degradations)
        {
            self.degradations.extend(degradations);
            if too_long {
                function.optional = true;
                function.input = Type::open_object();
                function.output = Type::Unknown;
                function.mentions.clear();
                self.degradations.push(degradation(
                    tool,
                    "",
                    Reason::TooLong {
                        limit: MAX_TOOL_TEXT,
                    },
                ));
            }
        }
    }

    fn declare_type<'t>(
        &'t self,
        declared: &'t Declared,
        text: &mut String,
        comments: &mut Comments<'t>,
    ) {
        // An alias, not an interface: values of interface types do not fit the
        // index signatures that open objects have.
        push_own_comment(&declared.comment, text, comments);
        text.push_str("type ");
        text.push_str(&declared.name);
        text.push_str(" = ");
        self.print(&declared.body, text, comments);
        text.push_str(";\n");
    }

    fn declare_function<'t>(
        &'t self,
        function: &'t Function,
        text: &mut String,
        comments: &mut Comments<'t>,
    ) {
        push_own_comment(&function.comment, text, comments);
        text.push_str("declare function ");
        text.push_str(&function.name);
        text.push_str(if function.optional {
            "(input?: "
        } else {
            "(input: "
        });
        self.print(&function.input, text, comments);
        text.push_str(", options?: CallOptions): Promise<");
        self.print(&function.output, text, comments);
        text.push_str(">;\n");
    }

    fn print<'t>(&'t self, ty: &'t Type, text: &mut String, comments: &mut Comments<'t>) {
        print_type(ty, text, comments, &|id, text| {
            if let Some(declared) = self.types.get(id) {
                text.push_str(&declared.name);
            }
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

#[derive(Debug, Clone)]
struct Declared {
    name: String,
    comment: String,
    body: Type,
    mentions: Vec<TypeId>,
}

#[derive(Debug, Clone)]
struct Function {
    name: String,
    summary: String,
    comment: String,
    optional: bool,
    input: Type,
    output: Type,
    mentions: Vec<TypeId>,
}

fn function(
    tool: &ToolSchema<'_>,
    settled: SettledTool,
    definitions: &[Definition],
    names: &TypeNames,
    degradations: &mut Vec<Degradation>,
) -> Function {
    let description = [tool.description, tool.title]
        .into_iter()
        .flatten()
        .find(|text| !text.trim().is_empty());
    let (mut comment, cut) = comment_text(description.unwrap_or_default(), MAX_COMMENT);
    if cut {
        let keyword = "description";
        degradations.push(degradation(
            tool,
            "/description",
            Reason::Shortened { keyword },
        ));
    }
    let summary = summary(&comment);
    for (label, inner) in [
        ("Input", settled.input_doc),
        ("Returns", settled.output_doc),
    ] {
        if let Some(inner) = inner.filter(|inner| !comment.contains(inner)) {
            if !comment.is_empty() {
                comment.push('\n');
            }
            comment.push_str(label);
            comment.push_str(": ");
            comment.push_str(&inner);
        }
    }
    let input = match settled.input {
        // Whatever its schema says, the input is an object.
        Type::Unknown => Type::open_object(),
        input => input,
    };
    let mut mentioned = mentions(&input, names);
    mentioned.extend(mentions(&settled.output, names));
    Function {
        name: tool.function.to_owned(),
        summary,
        comment,
        optional: may_be_empty(&input, definitions),
        input,
        output: settled.output,
        mentions: mentioned,
    }
}

/// The first line of a comment, shortened to what fits a list.
fn summary(comment: &str) -> String {
    let line = comment.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(MAX_SUMMARY) {
        Some((end, _)) => format!("{}…", prefix(line, end).trim_end()),
        None => line.to_owned(),
    }
}

fn push_own_comment(comment: &str, text: &mut String, comments: &Comments<'_>) {
    if !comment.is_empty() && !matches!(comments, Comments::None) {
        push_comment(comment, text);
        text.push('\n');
    }
}

fn degradation(tool: &ToolSchema<'_>, pointer: &str, reason: Reason) -> Degradation {
    Degradation {
        server: tool.server.to_owned(),
        tool: tool.tool.to_owned(),
        pointer: pointer.to_owned(),
        reason,
    }
}

fn mentions(ty: &Type, names: &TypeNames) -> Vec<TypeId> {
    ty.mentions()
        .into_iter()
        .filter_map(|id| names.representative.get(id).copied())
        .collect()
}
