//! All tools of all servers, each under its function name.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use callgate_policy::ToolName;
use callgate_schema::Declared;
use callgate_typegen::names::{self, Names};
use callgate_typegen::{Declarations, Detail, ToolSchema, generate};

use crate::definition::ToolDefinition;
use crate::tool::Tool;
use crate::warning::{collision, degraded, duplicate};

/// The tools of a run. It does not change once built.
///
/// The declarations take the longest. They are made on first use, or by [`Catalog::declare`],
/// which may be called from a thread of its own.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    tools: Vec<Tool>,
    by_function: HashMap<String, usize>,
    names: Names,
    /// Tools that are left out.
    hidden: Vec<Tool>,
    /// Tools that their servers keep from models.
    not_for_models: Vec<Tool>,
    warnings: Vec<String>,
    declarations: OnceLock<Declarations>,
}

impl Catalog {
    /// An empty catalog that reserves names in later ones: no tool gets one of `functions`, or a name
    /// with the longer prefix of a different one of `servers`.
    pub fn reserving<'a>(
        functions: impl IntoIterator<Item = &'a str>,
        servers: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self {
            names: Names::reserving(functions).among(servers),
            ..Self::default()
        }
    }

    /// Builds the catalog of `definitions`, in their order. If a server has two tools of one name, the
    /// first counts.
    pub fn build(definitions: Vec<ToolDefinition>) -> Self {
        let definitions = definitions.into_iter().map(Arc::new).collect();
        Self::build_without(&Names::default(), definitions, |_| false)
    }

    /// As [`Catalog::build`], with the names that tools had before, and without the tools for which
    /// `hides` is true. A hidden tool keeps its name, so that the names of others do not depend on
    /// `hides`.
    pub fn build_without(
        before: &Names,
        definitions: Vec<Arc<ToolDefinition>>,
        hides: impl Fn(ToolName<'_>) -> bool,
    ) -> Self {
        let mut warnings = Vec::new();
        let definitions = without_duplicates(definitions, &mut warnings);
        let (not_for_models, definitions): (Vec<_>, Vec<_>) = definitions
            .into_iter()
            .partition(|definition| definition.hidden);
        let names = names::assign_after(before, pairs(&definitions));
        let (hidden, tools): (Vec<_>, Vec<_>) = named(&names, definitions)
            .into_iter()
            .partition(|tool| hides(tool.name()));
        for tool in &tools {
            warnings.extend(tool.definition.warnings.iter().cloned());
        }
        warnings.extend(names.collisions().iter().map(collision));
        let functions = tools.iter().map(|tool| tool.function.clone());
        let by_function = functions.zip(0..).collect();
        // Named among themselves, so that the names of the others do not depend on them.
        let own_names = names::assign(pairs(&not_for_models));
        Self {
            tools,
            by_function,
            names,
            hidden,
            not_for_models: named(&own_names, not_for_models),
            warnings,
            declarations: OnceLock::new(),
        }
    }

    /// True if both have the same tools, with the same names. Equal definitions count as the same
    /// only where they are one value.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same = |a: &[Tool], b: &[Tool]| {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| Arc::ptr_eq(&a.definition, &b.definition) && a.name() == b.name())
        };
        is_same(&self.tools, &other.tools)
            && is_same(&self.hidden, &other.hidden)
            && self.names == other.names
            && is_same(&self.not_for_models, &other.not_for_models)
            && self.warnings == other.warnings
    }

    /// Makes the declarations, unless they are there: some 30 µs a tool.
    pub fn declare(&self) {
        self.declared();
    }

    /// Every tool, in the order given.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The tool behind a function.
    pub fn get(&self, function: &str) -> Option<&Tool> {
        self.tools.get(*self.by_function.get(function)?)
    }

    /// Every tool, including those hidden by [`Catalog::build_without`].
    pub fn with_hidden(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().chain(&self.hidden)
    }

    /// The tools that their servers keep from models, for a message to a person who names one.
    pub fn not_for_models(&self) -> &[Tool] {
        &self.not_for_models
    }

    /// The map between tools and functions.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The reason why no tool has this name, also in the tools' own spelling (`s_get-user`), if
    /// several tools would have it.
    pub fn collision(&self, function: &str) -> Option<String> {
        let function = names::identifier(function);
        let mut collisions = self.names.collisions().iter();
        collisions.find(|it| it.name == function).map(collision)
    }

    /// The declarations for the type check of a script with these names, as
    /// [`Declarations::for_script`] gives them.
    pub fn declarations_for(
        &self,
        names: Option<&HashSet<&str>>,
        known: impl Fn(&str) -> bool,
    ) -> String {
        self.declared().for_script(names, known)
    }

    /// These functions in this order, without unknown names, at this level of detail: lines of names,
    /// or TypeScript declarations with the types they need. `mark` gives a remark to put before the
    /// text of a tool.
    pub fn declarations_of(
        &self,
        detail: Detail,
        functions: &[&str],
        mark: impl Fn(&Tool) -> Option<String>,
    ) -> String {
        let mark = |function: &str| mark(self.get(function)?);
        self.declared().text_of(detail, functions, mark)
    }

    /// The first line of the description of a function's tool, if its server gives one.
    pub fn summary(&self, function: &str) -> Option<&str> {
        self.declared().summary(function)
    }

    /// The warnings: about definitions first, in their order, then about names, then
    /// about types.
    pub fn warnings(&self) -> Vec<String> {
        let about_types = self.declared().degradations().iter().map(degraded);
        self.warnings.iter().cloned().chain(about_types).collect()
    }

    fn declared(&self) -> &Declarations {
        self.declarations.get_or_init(|| {
            let schemas: Vec<ToolSchema<'_>> = self.tools.iter().map(schema).collect();
            generate(&schemas)
        })
    }
}

fn schema(tool: &Tool) -> ToolSchema<'_> {
    let definition = &tool.definition;
    ToolSchema {
        server: &definition.server,
        tool: &definition.name,
        function: &tool.function,
        title: definition.shown_title(),
        description: definition.description.as_deref(),
        input: &definition.input_schema,
        output: definition.output_schema.as_ref().map(Declared::value),
    }
}

/// Drops the duplicates of earlier tools, with a warning for each.
fn without_duplicates(
    mut definitions: Vec<Arc<ToolDefinition>>,
    warnings: &mut Vec<String>,
) -> Vec<Arc<ToolDefinition>> {
    let mut seen: HashSet<(String, String)> = HashSet::with_capacity(definitions.len());
    definitions.retain(|definition| {
        let first = seen.insert((definition.server.clone(), definition.name.clone()));
        if !first {
            warnings.push(duplicate(&definition.server, &definition.name));
        }
        first
    });
    definitions
}

fn pairs(definitions: &[Arc<ToolDefinition>]) -> impl Iterator<Item = (&str, &str)> {
    let definitions = definitions.iter();
    definitions.map(|tool| (tool.server.as_str(), tool.name.as_str()))
}

/// The tools of these definitions, under their names.
fn named(names: &Names, definitions: Vec<Arc<ToolDefinition>>) -> Vec<Tool> {
    let tools = definitions.into_iter().filter_map(|definition| {
        let (server, name) = (&definition.server, &definition.name);
        let function = names.function(server, name)?.to_owned();
        Some(Tool {
            aliases: names::aliases(server, name, &function),
            function,
            definition,
        })
    });
    tools.collect()
}
