//! Types as TypeScript text, written into one buffer.

use std::collections::HashSet;

use crate::ir::{Additional, Literal, Object, Property, Tuple, Type, TypeId};
use crate::text::{push_property_key, push_string_literal};

/// Bytes an object may take on one line.
const MAX_INLINE: usize = 80;
/// Declared types inside each other that are written in place of their names.
const MAX_INLINED: usize = 8;

/// The remarks on properties besides their types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remarks {
    /// No remarks.
    None,
    /// Comments, each before its property on its line.
    Comments,
    /// Comments for callers with JSON, which has no bigint.
    JsonComments,
    /// Short facts, each after its property; all in one line.
    Facts,
}

impl Remarks {
    fn has_comments(self) -> bool {
        matches!(self, Self::Comments | Self::JsonComments)
    }

    fn is_json(self) -> bool {
        matches!(self, Self::Facts | Self::JsonComments)
    }
}

/// Writes the name of a declared type that is mentioned, or gives the type to write in its place.
pub(crate) type Mention<'p, 't> = dyn Fn(TypeId, &mut String) -> Option<&'t Type> + 'p;

/// Writes a comment of text that comes from [`crate::text::comment_text`].
pub(crate) fn push_comment(comment: &str, text: &mut String) {
    text.push_str("/** ");
    text.push_str(comment);
    text.push_str(" */");
}

/// The binding strength of the place of a type, loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    /// After a colon, between brackets: nothing needs parentheses.
    Union,
    /// Between `&`: a union needs parentheses.
    Intersection,
    /// Before `[]` or `?`: an intersection does as well.
    Postfix,
}

/// The layout of objects: on several lines or on one.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// Several lines; the number is the indentation of further lines.
    Block(usize),
    /// One line; the number is its maximum length in bytes.
    Line(usize),
}

/// Writes a type to `text`.
pub(crate) fn print_type<'t>(
    ty: &'t Type,
    text: &mut String,
    remarks: Remarks,
    mention: &Mention<'_, 't>,
) {
    let layout = match remarks {
        Remarks::Facts => Layout::Line(usize::MAX),
        _ => Layout::Block(0),
    };
    Printer {
        text,
        remarks,
        mention,
        inlined: 0,
    }
    .ty(ty, Precedence::Union, layout);
}

struct Printer<'p, 't> {
    text: &'p mut String,
    remarks: Remarks,
    mention: &'p Mention<'p, 't>,
    /// Declared types around the present place that are written in place of their names.
    inlined: usize,
}

impl<'t> Printer<'_, 't> {
    /// Writes a type in a place; false where it does not fit into its line.
    fn ty(&mut self, ty: &'t Type, place: Precedence, layout: Layout) -> bool {
        match ty {
            Type::Unknown => self.text.push_str("unknown"),
            Type::Never => self.text.push_str("never"),
            Type::Null => self.text.push_str("null"),
            Type::Boolean => self.text.push_str("boolean"),
            Type::Integer | Type::Number => self.text.push_str("number"),
            // A signature is for readers, who write numbers.
            Type::BigInt if self.remarks.is_json() => self.text.push_str("number"),
            Type::BigInt => self.text.push_str("bigint"),
            Type::String => self.text.push_str("string"),
            Type::Literal(Literal::Boolean(true)) => self.text.push_str("true"),
            Type::Literal(Literal::Boolean(false)) => self.text.push_str("false"),
            Type::Literal(Literal::Number(number)) => self.text.push_str(number),
            Type::Literal(Literal::String(string)) => push_string_literal(string, self.text),
            Type::Named(id) => match (self.mention)(*id, self.text) {
                Some(_) if self.inlined == MAX_INLINED => self.text.push_str("unknown"),
                Some(ty) => {
                    self.inlined += 1;
                    let fits = self.ty(ty, place, layout);
                    self.inlined -= 1;
                    return fits;
                }
                None => {}
            },
            Type::Array(item) => {
                let fits = self.ty(item, Precedence::Postfix, layout);
                self.text.push_str("[]");
                return fits && self.fits(layout);
            }
            Type::Tuple(tuple) => return self.tuple(tuple, layout),
            Type::Object(object) => return self.object(object, layout),
            Type::Union(members) => {
                return self.joined(members, " | ", Precedence::Union, place, layout);
            }
            Type::Intersection(members) => {
                return self.joined(members, " & ", Precedence::Intersection, place, layout);
            }
        }
        self.fits(layout)
    }

    fn fits(&self, layout: Layout) -> bool {
        match layout {
            Layout::Block(_) => true,
            Layout::Line(end) => self.text.len() <= end,
        }
    }

    fn joined(
        &mut self,
        members: &'t [Type],
        operator: &str,
        own: Precedence,
        place: Precedence,
        layout: Layout,
    ) -> bool {
        let inner = match own {
            Precedence::Union => Precedence::Intersection,
            Precedence::Intersection | Precedence::Postfix => Precedence::Postfix,
        };
        let start = self.text.len();
        let parenthesised = place > own;
        if parenthesised {
            self.text.push('(');
        }
        let Some(count) = self.distinct(members, operator, inner, layout) else {
            return false;
        };
        // With one member left, the union is that member, which may be an intersection.
        let first = members.first();
        let loose = place > Precedence::Intersection
            && first.is_some_and(|member| matches!(member, Type::Intersection(_)));
        if parenthesised && (count > 1 || own == Precedence::Union && loose) {
            self.text.push(')');
        } else if parenthesised {
            self.text.remove(start);
        }
        self.fits(layout)
    }

    /// Writes members that differ as texts, since types can differ where TypeScript sees no
    /// difference. Gives their number; `None` where they do not fit into their line.
    fn distinct(
        &mut self,
        members: impl IntoIterator<Item = &'t Type>,
        operator: &str,
        place: Precedence,
        layout: Layout,
    ) -> Option<usize> {
        let mut written = HashSet::new();
        for member in members {
            let before = self.text.len();
            if !written.is_empty() {
                self.text.push_str(operator);
            }
            let from = self.text.len();
            if !self.ty(member, place, layout) {
                return None;
            }
            if !written.insert(self.text.get(from..).unwrap_or_default().to_owned()) {
                self.text.truncate(before);
            }
        }
        Some(written.len())
    }

    fn tuple(&mut self, tuple: &'t Tuple, layout: Layout) -> bool {
        self.text.push('[');
        for (index, ty) in tuple.places.iter().enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            let required = index < tuple.required;
            let place = if required {
                Precedence::Union
            } else {
                Precedence::Postfix
            };
            if !self.ty(ty, place, layout) {
                return false;
            }
            if !required {
                self.text.push('?');
            }
        }
        if let Some(rest) = &tuple.rest {
            let comma = if tuple.places.is_empty() { "" } else { ", " };
            self.text.push_str(comma);
            self.text.push_str("...");
            if !self.ty(rest, Precedence::Postfix, layout) {
                return false;
            }
            self.text.push_str("[]");
        }
        self.text.push(']');
        self.fits(layout)
    }

    fn object(&mut self, object: &'t Object, layout: Layout) -> bool {
        if object.properties.is_empty() {
            // `{}` would be anything but null.
            self.text.push_str("{ [key: string]: ");
            let fits = match &object.additional {
                Additional::Closed => self.ty(&Type::Never, Precedence::Union, layout),
                Additional::Unmentioned => self.ty(&Type::Unknown, Precedence::Union, layout),
                Additional::Typed(ty) => self.ty(ty, Precedence::Union, layout),
            };
            self.text.push_str(" }");
            return fits && self.fits(layout);
        }
        match layout {
            Layout::Line(end) => self.line(object, end),
            Layout::Block(indent) => {
                let start = self.text.len();
                if !self.line(object, start.saturating_add(MAX_INLINE)) {
                    self.text.truncate(start);
                    self.block(object, indent);
                }
                true
            }
        }
    }

    /// Writes an object on one line, if it fits and none of its properties has a comment to show.
    fn line(&mut self, object: &'t Object, end: usize) -> bool {
        let separator = match self.remarks {
            Remarks::Facts => ", ",
            _ => "; ",
        };
        self.text.push_str("{ ");
        for (index, property) in object.properties.iter().enumerate() {
            if index > 0 {
                self.text.push_str(separator);
            }
            if self.remarks.has_comments() && property.doc.is_some() {
                return false;
            }
            if !self.property(property, Layout::Line(end)) {
                return false;
            }
            if self.remarks == Remarks::Facts
                && let Some(doc) = property.doc.as_ref().filter(|doc| !doc.facts.is_empty())
            {
                self.text.push_str(" /* ");
                self.text.push_str(&doc.facts);
                self.text.push_str(" */");
            }
        }
        if !self.index_signature(object, separator, Layout::Line(end)) {
            return false;
        }
        self.text.push_str(" }");
        self.text.len() <= end
    }

    fn block(&mut self, object: &'t Object, indent: usize) {
        let inner = indent + 1;
        self.text.push_str("{\n");
        for property in &object.properties {
            self.pad(inner);
            if self.remarks.has_comments()
                && let Some(doc) = &property.doc
            {
                push_comment(&doc.comment, self.text);
                self.text.push(' ');
            }
            self.property(property, Layout::Block(inner));
            self.text.push_str(";\n");
        }
        let before = self.text.len();
        self.pad(inner);
        let from = self.text.len();
        self.index_signature(object, "", Layout::Block(inner));
        if self.text.len() > from {
            self.text.push_str(";\n");
        } else {
            self.text.truncate(before);
        }
        self.pad(indent);
        self.text.push('}');
    }

    fn property(&mut self, property: &'t Property, layout: Layout) -> bool {
        push_property_key(&property.name, self.text);
        self.text
            .push_str(if property.optional { "?: " } else { ": " });
        self.ty(&property.ty, Precedence::Union, layout)
    }

    /// Writes the signature of the other properties, if there is one. Every
    /// named property has to fit it, so it is as wide as all of them together.
    fn index_signature(&mut self, object: &'t Object, before: &str, layout: Layout) -> bool {
        let Additional::Typed(additional) = &object.additional else {
            return true;
        };
        self.text.push_str(before);
        self.text.push_str("[key: string]: ");
        if self.remarks == Remarks::Facts {
            // For readers, not for TypeScript: the named properties are none of these.
            return self.ty(additional, Precedence::Union, layout);
        }
        let types = object.properties.iter().map(|property| &property.ty);
        // Every level of nesting would double the text below it.
        if types.clone().any(Type::has_properties) {
            self.text.push_str("unknown");
            return self.fits(layout);
        }
        let mut all: Vec<&'t Type> = Vec::new();
        for ty in std::iter::once(&**additional).chain(types) {
            match ty {
                Type::Union(members) => all.extend(members),
                Type::Never => {}
                ty => all.push(ty),
            }
        }
        if all.contains(&&Type::Unknown) {
            self.text.push_str("unknown");
            return self.fits(layout);
        }
        match self.distinct(all, " | ", Precedence::Intersection, layout) {
            None => return false,
            Some(0) => self.text.push_str("never"),
            Some(_) => {}
        }
        if object.properties.iter().any(|property| property.optional) {
            self.text.push_str(" | undefined");
        }
        self.fits(layout)
    }

    fn pad(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}

#[cfg(test)]
mod tests {
    use super::{Remarks, print_type};
    use crate::ir::{Literal, Tuple, Type};

    #[track_caller]
    fn check(ty: Type, expected: &str) {
        let mut text = String::new();
        print_type(&ty, &mut text, Remarks::Comments, &|id, text| {
            text.push_str(&format!("T{id}"));
            None
        });
        assert_eq!(text, expected);
    }

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        let array = |ty| Type::Array(Box::new(ty));
        let either = Type::union([Type::String, Type::Null]);
        let both = Type::intersection([Type::Named(0), Type::Named(1)]);
        check(either.clone(), "string | null");
        check(array(either.clone()), "(string | null)[]");
        check(array(array(Type::Integer)), "number[][]");
        check(array(both.clone()), "(T0 & T1)[]");
        check(Type::union([both.clone(), Type::Null]), "T0 & T1 | null");
        check(
            Type::intersection([either.clone(), Type::Named(0)]),
            "(string | null) & T0",
        );
        check(
            array(Type::Union(vec![Type::Integer, Type::Number])),
            "number[]",
        );
        let alike = Type::Union(
            [Type::Integer, Type::Number]
                .map(|ty| Type::Intersection(vec![Type::Named(0), array(ty)]))
                .to_vec(),
        );
        check(array(alike.clone()), "(T0 & number[])[]");
        check(
            Type::Tuple(Tuple {
                places: vec![alike.clone(), alike],
                required: 1,
                rest: None,
            }),
            "[T0 & number[], (T0 & number[])?]",
        );
        check(
            Type::Tuple(Tuple {
                places: vec![either.clone(), either.clone()],
                required: 1,
                rest: Some(Box::new(either)),
            }),
            "[string | null, (string | null)?, ...(string | null)[]]",
        );
        check(
            Type::Union(vec![
                Type::Literal(Literal::Number("-1".to_owned())),
                Type::Literal(Literal::Boolean(true)),
            ]),
            "-1 | true",
        );
    }

    #[test]
    fn a_union_says_each_member_once() {
        let many = (0..40).flat_map(|n| {
            [
                Type::Array(Box::new(Type::Literal(Literal::Number(
                    (n % 30).to_string(),
                )))),
                Type::Integer,
            ]
        });
        let mut expected = vec!["0[]".to_owned(), "number".to_owned()];
        expected.extend((1..30).map(|n| format!("{n}[]")));
        check(Type::Union(many.collect()), &expected.join(" | "));
    }
}
