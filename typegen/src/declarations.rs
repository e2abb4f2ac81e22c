//! The declarations of a catalog: made once, shown whole or in part.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use serde_json::Value;

use crate::degradation::{Degradation, Reason};
use crate::deprecated::deprecation;
use crate::detail::Detail;
use crate::empty::may_be_empty;
use crate::inline::{SettledTool, settle};
use crate::ir::{Type, TypeId};
use crate::lower::{Definition, Found, lower_tool};
use crate::naming::{TypeNames, name_types};
use crate::print::{Remarks, print_type, push_comment};
use crate::text::{comment_text, prefix};

/// Bytes of a function's comment.
const MAX_COMMENT: usize = 4_000;
/// Characters of a summary.
const MAX_SUMMARY: usize = 100;
/// Bytes of one tool's declarations, the types it refers to included once.
const MAX_TOOL_TEXT: usize = 128 * 1024;

/// The parts of a tool that its declaration needs.
#[derive(Debug, Clone, Copy)]
pub struct ToolSchema<'a> {
    /// The server's configured name.
    pub server: &'a str,
    /// The tool's name on its server.
    pub tool: &'a str,
    /// The tool's function name, from [`crate::names::assign`].
    pub function: &'a str,
    /// The display name.
    pub title: Option<&'a str>,
    /// The server's description of the tool.
    pub description: Option<&'a str>,
    /// The JSON Schema of its arguments.
    pub input: &'a Value,
    /// The JSON Schema of its structured result.
    pub output: Option<&'a Value>,
}

/// Generates the declarations of all tools of a catalog. Any JSON is accepted as a schema: an
/// inexpressible part becomes `unknown` and is reported.
pub fn generate(tools: &[ToolSchema<'_>]) -> Declarations {
    let mut definitions = Vec::new();
    let mut settled = Vec::with_capacity(tools.len());
    let mut degradations = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let mut own = Vec::new();
        let mut lowered = lower_tool(index, tool.input, tool.output, &mut own);
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
            comment: definition.doc.unwrap_or_default().comment,
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
    /// The text of the functions that `select` accepts, at level `detail`, in the order of the
    /// tools. [`Detail::Full`] puts the declarations of the types that the functions need first.
    pub fn text(&self, detail: Detail, select: impl Fn(&str) -> bool) -> String {
        let names = self.functions.iter().map(|function| function.name.as_str());
        let chosen: Vec<&str> = names.filter(|name| select(name)).collect();
        self.text_of(detail, &chosen, |_| None)
    }

    /// Like [`Declarations::text`], for these functions in this order; unknown names are skipped.
    /// `mark` gives a remark to put before a function's text.
    pub fn text_of(
        &self,
        detail: Detail,
        functions: &[&str],
        mark: impl Fn(&str) -> Option<String>,
    ) -> String {
        let found = |name: &&str| self.functions.get(*self.by_name.get(*name)?);
        let chosen: Vec<&Function> = functions.iter().filter_map(found).collect();
        let mut text = String::new();
        let push_mark = |function: &Function, end: char, text: &mut String| {
            if let Some(mark) = mark(&function.name) {
                push_comment(&comment_text(&mark, MAX_COMMENT).0, text);
                text.push(end);
            }
        };
        match detail {
            Detail::Name | Detail::Summary => {
                for function in chosen {
                    text.push_str(&function.name);
                    let summary = function.summary.as_str();
                    let is_shown = detail == Detail::Summary && !summary.is_empty();
                    let is_marked = is_shown && deprecation(summary).is_some();
                    let is_deprecated = function.deprecated.is_some() && !is_marked;
                    let said = [
                        mark(&function.name),
                        is_deprecated.then(|| "DEPRECATED".to_owned()),
                        is_shown.then(|| summary.to_owned()),
                    ];
                    for said in said.into_iter().flatten() {
                        text.push_str(": ");
                        text.push_str(&said);
                    }
                    text.push('\n');
                }
            }
            Detail::Signature => {
                for function in chosen {
                    push_mark(function, ' ', &mut text);
                    if let Some(advice) = &function.deprecated {
                        push_comment(format!("@deprecated {advice}").trim_end(), &mut text);
                        text.push(' ');
                    }
                    self.push_call(function, &mut text, Remarks::Facts);
                }
            }
            Detail::Call => {
                for function in chosen {
                    push_mark(function, '\n', &mut text);
                    push_own_comment(&function.comment, &mut text, Remarks::JsonComments);
                    self.push_call(function, &mut text, Remarks::JsonComments);
                }
            }
            Detail::Full => {
                for declared in self.declared_for(&chosen) {
                    self.declare_type(declared, &mut text, Remarks::Comments);
                }
                for function in chosen {
                    push_mark(function, '\n', &mut text);
                    self.declare_function(function, &mut text, Remarks::Comments);
                }
            }
            Detail::Read => {
                let own = self.own_inputs(&chosen);
                for declared in self.declared_for(&chosen) {
                    if !own.contains(declared.name.as_str()) {
                        self.declare_type(declared, &mut text, Remarks::Comments);
                    }
                }
                for function in chosen {
                    push_mark(function, '\n', &mut text);
                    let input = self.named(&function.input);
                    let input = input.filter(|it| own.contains(it.name.as_str()));
                    let input = input.map_or(&function.input, |it| &it.body);
                    // A number is a bigint to the type check, too.
                    let input = (input, Remarks::JsonComments);
                    self.declare_with(function, input, &mut text, Remarks::Comments);
                }
            }
        }
        text
    }

    /// Writes a call that stands alone. A type that it mentions once stands in place of its name;
    /// the others follow.
    fn push_call(&self, function: &Function, text: &mut String, remarks: Remarks) {
        let (mut types, mut uses) = (Vec::new(), HashMap::<&str, usize>::new());
        let mut open = VecDeque::from([&function.input, &function.output]);
        while let Some(ty) = open.pop_front() {
            ty.visit(&mut |ty| {
                if let Type::Named(id) = ty
                    && let Some(declared) = self.types.get(*id)
                {
                    let uses = uses.entry(&declared.name).or_default();
                    *uses += 1;
                    if *uses == 1 {
                        types.push(declared);
                        open.push_back(&declared.body);
                    }
                }
            });
        }
        let is_inline = |name: &str| uses.get(name) == Some(&1);
        let mention = |id: TypeId, text: &mut String| {
            let declared = self.types.get(id)?;
            if is_inline(&declared.name) {
                return Some(&declared.body);
            }
            text.push_str(&declared.name);
            None
        };
        text.push_str(&function.name);
        text.push('(');
        if !function.input.is_memberless() {
            print_type(&function.input, text, remarks, &mention);
        }
        text.push_str("): ");
        print_type(&function.output, text, remarks, &mention);
        for declared in types.iter().filter(|declared| !is_inline(&declared.name)) {
            text.push_str("; type ");
            text.push_str(&declared.name);
            text.push_str(" = ");
            print_type(&declared.body, text, remarks, &mention);
        }
        text.push('\n');
    }

    /// Declarations for the type check of a script, without comments. The functions and types in
    /// `names`, and the types they need, are declared in full; every other function in one line
    /// that takes and gives anything, so that its name is known. `None` declares all in full. A
    /// function that `known` rejects is not declared at all.
    ///
    /// For a script that uses no other names, the omitted declarations make no difference.
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
                self.declare_type(declared, &mut text, Remarks::None);
            }
        }
        for function in chosen {
            self.declare_function(function, &mut text, Remarks::None);
        }
        for function in others {
            text.push_str("declare function ");
            text.push_str(&function.name);
            text.push_str("(input?: any, options?: CallOptions): Promise<any>;\n");
        }
        text
    }

    /// The first line of a tool's description, if its server gives one.
    pub fn summary(&self, function: &str) -> Option<&str> {
        let found = self.functions.get(*self.by_name.get(function)?)?;
        (!found.summary.is_empty()).then_some(found.summary.as_str())
    }

    /// The places where declarations say less than schemas, by tool.
    pub fn degradations(&self) -> &[Degradation] {
        &self.degradations
    }

    /// Widens declarations that are too long, and lists the degradations.
    fn bound(&mut self, tools: &[ToolSchema<'_>], degradations: Vec<Vec<Found>>) {
        let mut scratch = String::new();
        let mut length = |print: &dyn Fn(&mut String)| {
            scratch.clear();
            print(&mut scratch);
            scratch.len()
        };
        let types: Vec<usize> = self
            .types
            .iter()
            .map(|ty| length(&|text| self.declare_type(ty, text, Remarks::Comments)))
            .collect();
        let too_long: Vec<bool> = self
            .functions
            .iter()
            .map(|function| {
                let own = length(&|text| self.declare_function(function, text, Remarks::Comments));
                self.reachable(function.mentions.iter().copied())
                    .into_iter()
                    .filter_map(|id| types.get(id).copied())
                    .fold(own, usize::saturating_add)
                    > MAX_TOOL_TEXT
            })
            .collect();
        for (((tool, function), too_long), mut found) in tools
            .iter()
            .zip(&mut self.functions)
            .zip(too_long)
            .zip(degradations)
        {
            if too_long {
                function.optional = true;
                function.input = Type::open_object();
                function.output = Type::Unknown;
                function.mentions.clear();
                let limit = MAX_TOOL_TEXT;
                found.push((String::new(), Reason::TooLong { limit }));
            }
            let degradations = found.into_iter().map(|(pointer, reason)| Degradation {
                server: tool.server.to_owned(),
                tool: tool.tool.to_owned(),
                pointer,
                reason,
            });
            self.degradations.extend(degradations);
        }
    }

    fn declare_type(&self, declared: &Declared, text: &mut String, remarks: Remarks) {
        // An alias, not an interface: values of interface types do not fit the
        // index signatures that open objects have.
        push_own_comment(&declared.comment, text, remarks);
        text.push_str("type ");
        text.push_str(&declared.name);
        text.push_str(" = ");
        self.print(&declared.body, text, remarks);
        text.push_str(";\n");
    }

    fn declare_function(&self, function: &Function, text: &mut String, remarks: Remarks) {
        self.declare_with(function, (&function.input, remarks), text, remarks);
    }

    /// Declares a function with this type of its input and the remarks on it.
    fn declare_with(
        &self,
        function: &Function,
        (input, of_input): (&Type, Remarks),
        text: &mut String,
        remarks: Remarks,
    ) {
        push_own_comment(&function.comment, text, remarks);
        text.push_str("declare function ");
        text.push_str(&function.name);
        text.push_str(if function.optional {
            "(input?: "
        } else {
            "(input: "
        });
        self.print(input, text, of_input);
        text.push_str(", options?: CallOptions): Promise<");
        self.print(&function.output, text, remarks);
        text.push_str(">;\n");
    }

    fn print(&self, ty: &Type, text: &mut String, remarks: Remarks) {
        print_type(ty, text, remarks, &|id, text| {
            text.push_str(&self.types.get(id)?.name);
            None
        });
    }

    /// The type that a mention names.
    fn named(&self, ty: &Type) -> Option<&Declared> {
        let Type::Named(id) = ty else { return None };
        self.types.get(*id)
    }

    /// The types that functions need, nearest first.
    fn declared_for(&self, chosen: &[&Function]) -> impl Iterator<Item = &Declared> {
        let mentioned = chosen.iter().flat_map(|it| it.mentions.iter().copied());
        let reached = self.reachable(mentioned).into_iter();
        reached.filter_map(move |id| self.types.get(id))
    }

    /// The names of the types without a comment that one of these functions has as its input, and
    /// nothing else uses.
    fn own_inputs(&self, chosen: &[&Function]) -> HashSet<&str> {
        let mut uses = HashMap::<&str, usize>::new();
        let roots = chosen.iter().flat_map(|it| [&it.input, &it.output]);
        for ty in roots.chain(self.declared_for(chosen).map(|it| &it.body)) {
            ty.visit(&mut |ty| {
                if let Some(declared) = self.named(ty) {
                    *uses.entry(&declared.name).or_default() += 1;
                }
            });
        }
        let inputs = chosen.iter().filter_map(|it| self.named(&it.input));
        let plain = inputs.filter(|it| it.comment.is_empty());
        let names = plain.map(|it| it.name.as_str());
        names.filter(|name| uses.get(name) == Some(&1)).collect()
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
    /// The replacement, if it is deprecated; may be empty.
    deprecated: Option<String>,
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
    degradations: &mut Vec<Found>,
) -> Function {
    let description = [tool.description, tool.title]
        .into_iter()
        .flatten()
        .find(|text| !text.trim().is_empty());
    let (mut comment, cut) = comment_text(description.unwrap_or_default(), MAX_COMMENT);
    if cut {
        let keyword = "description";
        degradations.push(("/description".to_owned(), Reason::Shortened { keyword }));
    }
    let summary = summary(&comment);
    let deprecated = deprecation(&comment)
        .or_else(|| deprecation(tool.title?))
        .map(|advice| comment_text(&advice.replace('\n', " "), MAX_SUMMARY).0);
    for (label, inner) in [
        ("Input", settled.input_doc),
        ("Returns", settled.output_doc),
    ] {
        let inner = inner.map(|doc| doc.comment);
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
        deprecated,
        optional: may_be_empty(&input, definitions),
        input,
        output: settled.output,
        mentions: mentioned,
    }
}

/// The first line of a comment, shortened for a list: to its first sentence, else to whole words.
fn summary(comment: &str) -> String {
    let line = comment.lines().next().unwrap_or_default().trim();
    let Some((end, _)) = line.char_indices().nth(MAX_SUMMARY) else {
        return line.to_owned();
    };
    let head = prefix(line, end);
    let is_end = |place: &usize| {
        let next = line.get(place + 2..).and_then(|rest| rest.chars().next());
        next.is_some_and(|next| !next.is_lowercase())
    };
    let mut sentences = head.match_indices(". ").map(|(place, _)| place);
    if let Some(place) = sentences.find(is_end) {
        return prefix(head, place + 1).to_owned();
    }
    let words = head.rsplit_once(' ').map_or(head, |(words, _)| words);
    let is_mark = |c: char| matches!(c, ',' | ';' | ':' | '(' | '-') || c.is_whitespace();
    format!("{}…", words.trim_end_matches(is_mark))
}

fn push_own_comment(comment: &str, text: &mut String, remarks: Remarks) {
    if !comment.is_empty() && remarks != Remarks::None {
        push_comment(comment, text);
        text.push('\n');
    }
}

fn mentions(ty: &Type, names: &TypeNames) -> Vec<TypeId> {
    ty.mentions()
        .into_iter()
        .filter_map(|id| names.representative.get(id).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn summary_ends_at_a_sentence_or_word() {
        let long = "Takes the words and gives them back in an order that is another one each time";
        let wide = "日本語".repeat(50);
        let cut: String = wide.chars().take(100).collect();
        for (comment, expected) in [
            (
                "Reads a file. Fast.\nMore.",
                "Reads a file. Fast.".to_owned(),
            ),
            (
                &format!("Reads a file, e.g. as text. Handles various encodings. {long}"),
                "Reads a file, e.g. as text.".to_owned(),
            ),
            (
                &format!("{long}, handles various text encodings and more"),
                format!("{long}, handles various text…"),
            ),
            (
                &format!("{long}, handles various (texts)"),
                format!("{long}, handles various…"),
            ),
            (&wide, format!("{cut}…")),
            ("", String::new()),
        ] {
            assert_eq!(summary(comment), expected);
        }
    }
}
