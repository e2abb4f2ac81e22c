//! Types as TypeScript text.

use std::fmt::Write as _;

use crate::ir::{Additional, Literal, Object, Tuple, Type, TypeId};
use crate::text::{doc_comment, property_key, string_literal};

/// Bytes of a property's doc comment.
const MAX_PROPERTY_DOC: usize = 1_000;
/// Columns an object may take on one line.
const MAX_INLINE: usize = 72;

/// How tightly a place binds the type in it, loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    /// After a colon, between brackets: anything stands as it is.
    Union,
    /// Between `&`: a union needs parentheses.
    Intersection,
    /// Before `[]` or `?`: an intersection does as well.
    Postfix,
}

/// Prints a type, with `name` giving the names of declared ones.
pub(crate) fn print_body(ty: &Type, name: &dyn Fn(TypeId) -> String) -> String {
    Printer { name }.ty(ty, Precedence::Union, 0)
}

struct Printer<'n> {
    name: &'n dyn Fn(TypeId) -> String,
}

impl Printer<'_> {
    /// A type in a place, its further lines indented by `indent` spaces.
    fn ty(&self, ty: &Type, place: Precedence, indent: usize) -> String {
        match ty {
            Type::Unknown => "unknown".to_owned(),
            Type::Never => "never".to_owned(),
            Type::Null => "null".to_owned(),
            Type::Boolean => "boolean".to_owned(),
            Type::Integer | Type::Number => "number".to_owned(),
            Type::String => "string".to_owned(),
            Type::Literal(Literal::Boolean(boolean)) => boolean.to_string(),
            Type::Literal(Literal::Number(number)) => number.clone(),
            Type::Literal(Literal::String(string)) => string_literal(string),
            Type::Named(id) => (self.name)(*id),
            Type::Array(item) => format!("{}[]", self.ty(item, Precedence::Postfix, indent)),
            Type::Tuple(tuple) => self.tuple(tuple, indent),
            Type::Object(object) => self.object(object, indent),
            Type::Union(members) => self.joined(members, " | ", Precedence::Union, place, indent),
            Type::Intersection(members) => {
                self.joined(members, " & ", Precedence::Intersection, place, indent)
            }
        }
    }

    fn joined(
        &self,
        members: &[Type],
        operator: &str,
        own: Precedence,
        place: Precedence,
        indent: usize,
    ) -> String {
        let inner = match own {
            Precedence::Union => Precedence::Intersection,
            Precedence::Intersection | Precedence::Postfix => Precedence::Postfix,
        };
        // Members that differ only where TypeScript sees no difference.
        let mut texts: Vec<String> = Vec::with_capacity(members.len());
        let mut seen = std::collections::HashSet::new();
        for member in members {
            let text = self.ty(member, inner, indent);
            if seen.insert(text.clone()) {
                texts.push(text);
            }
        }
        let text = texts.join(operator);
        if place > own && texts.len() > 1 {
            format!("({text})")
        } else {
            text
        }
    }

    fn tuple(&self, tuple: &Tuple, indent: usize) -> String {
        let mut places = Vec::with_capacity(tuple.places.len() + 1);
        for (index, ty) in tuple.places.iter().enumerate() {
            if index < tuple.required {
                places.push(self.ty(ty, Precedence::Union, indent));
            } else {
                places.push(format!("{}?", self.ty(ty, Precedence::Postfix, indent)));
            }
        }
        if let Some(rest) = &tuple.rest {
            places.push(format!(
                "...{}[]",
                self.ty(rest, Precedence::Postfix, indent)
            ));
        }
        format!("[{}]", places.join(", "))
    }

    fn object(&self, object: &Object, indent: usize) -> String {
        if object.properties.is_empty() {
            // `{}` would be anything but null.
            return match &object.additional {
                Additional::Closed => "{ [key: string]: never }".to_owned(),
                Additional::Unmentioned => "{ [key: string]: unknown }".to_owned(),
                Additional::Typed(ty) => {
                    format!(
                        "{{ [key: string]: {} }}",
                        self.ty(ty, Precedence::Union, indent)
                    )
                }
            };
        }
        let inner = indent + 2;
        let pad = " ".repeat(inner);
        let mut members: Vec<(String, String)> = Vec::with_capacity(object.properties.len() + 1);
        for property in &object.properties {
            let doc = property.doc.as_deref().unwrap_or("");
            let mark = if property.optional { "?" } else { "" };
            let ty = self.ty(&property.ty, Precedence::Union, inner);
            members.push((
                doc_comment(doc, inner, MAX_PROPERTY_DOC),
                format!("{}{mark}: {ty}", property_key(&property.name)),
            ));
        }
        if let Additional::Typed(ty) = &object.additional {
            let ty = self.index_signature(object, ty, inner);
            members.push((String::new(), format!("[key: string]: {ty}")));
        }

        let length: usize = members.iter().map(|(_, member)| member.len() + 2).sum();
        let plain = members
            .iter()
            .all(|(doc, member)| doc.is_empty() && !member.contains('\n'));
        if plain && length <= MAX_INLINE {
            let members: Vec<String> = members.into_iter().map(|(_, member)| member).collect();
            return format!("{{ {} }}", members.join("; "));
        }
        let mut text = "{\n".to_owned();
        for (doc, member) in members {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{doc}{pad}{member};");
        }
        text.push_str(&" ".repeat(indent));
        text.push('}');
        text
    }

    /// TypeScript wants every named property to fit the index signature, so it
    /// is as wide as all of them together.
    fn index_signature(&self, object: &Object, additional: &Type, indent: usize) -> String {
        let own = object.properties.iter().map(|property| property.ty.clone());
        let ty = Type::union(std::iter::once(additional.clone()).chain(own));
        let text = self.ty(&ty, Precedence::Intersection, indent);
        let optional = object.properties.iter().any(|property| property.optional);
        if ty == Type::Unknown {
            text
        } else if optional {
            let bare = self.ty(&ty, Precedence::Union, indent);
            format!("{bare} | undefined")
        } else {
            self.ty(&ty, Precedence::Union, indent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::print_body;
    use crate::ir::{Additional, Literal, Object, Property, Tuple, Type};

    #[test]
    fn operators_are_parenthesised_where_they_bind_too_loosely() {
        let check = |ty: Type, expected: &str| {
            assert_eq!(print_body(&ty, &|id| format!("T{id}")), expected);
        };
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
        check(
            Type::Object(Object {
                properties: vec![Property {
                    name: "a".to_owned(),
                    ty: Type::String,
                    optional: true,
                    doc: None,
                }],
                additional: Additional::Typed(Box::new(Type::Number)),
            }),
            "{ a?: string; [key: string]: number | string | undefined }",
        );
    }
}
