//! The JSON Schema of a TypeScript type in text, for the types that [`json_schema`] lists.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use swc_common::{Span, Spanned as _};
use swc_ecma_ast::{
    Decl, Expr, Lit, ModuleItem, Stmt, TsArrayType, TsEntityName, TsFnParam, TsKeywordType,
    TsKeywordTypeKind, TsLit, TsTupleType, TsType, TsTypeElement, TsTypeLit, TsTypeOperatorOp,
    TsTypeRef, TsUnionOrIntersectionType, TsUnionType,
};

use crate::parse;
use crate::parser_stack;

/// Maximum bytes of a type: 8 KiB.
pub const MAX_TYPE_BYTES: usize = 8 << 10;
const MAX_TYPE_DEPTH: usize = 32;
/// The text before the type for the parser.
const BEFORE: &str = "type T = (";
/// The prefix of the private keys of `serde_json`, which would misread a property with such a name.
const RESERVED: &str = "$serde_json::private::";

/// The reason why a text cannot be converted to a JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct TypeTextError(String);

impl TypeTextError {
    /// An error with this message, for a parser that did not finish.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// The JSON Schema (2020-12) of the values of a type.
///
/// Known are `string`, `number`, `boolean`, `null`, `any`, `unknown`, `object`; literal types of
/// texts, numbers, `true` and `false`; `T[]`, `Array<T>`, `ReadonlyArray<T>` and tuples; objects with
/// properties, optional or not, and an index signature over `string`; `Record<string, T>`; unions;
/// parentheses and `readonly`. An object has only the properties that are written.
///
/// No text makes it panic, but some take as long as with [`prepare`](crate::prepare).
///
/// # Errors
///
/// The text is not a type, is not one of these types, or exceeds [`MAX_TYPE_BYTES`] or 32 levels.
pub fn json_schema(text: &str) -> Result<Value, TypeTextError> {
    if text.len() > MAX_TYPE_BYTES {
        let bytes = text.len();
        return failed(format!(
            "the type has {bytes} bytes, over the limit of {MAX_TYPE_BYTES}"
        ));
    }
    let read = parser_stack::run(text, read);
    read.unwrap_or_else(|panicked| failed(format!("the type {panicked}")))
}

fn read(text: &str) -> Result<Value, TypeTextError> {
    let whole = format!("{BEFORE}{text}\n);");
    let module = parse::module(&whole).map_err(|error| {
        TypeTextError(format!(
            "the text is not a TypeScript type: {}",
            error.message
        ))
    })?;
    let [ModuleItem::Stmt(Stmt::Decl(Decl::TsTypeAlias(alias)))] = module.body.as_slice() else {
        return failed("the text is more than one TypeScript type".to_owned());
    };
    let reader = Reader { whole: &whole };
    // The parentheses were added above, and reach to the end.
    match &*alias.type_ann {
        TsType::TsParenthesizedType(own) if parse::range(own.span).end + 1 == whole.len() => {
            reader.schema(&own.type_ann, 0)
        }
        _ => failed("the text is more than one TypeScript type".to_owned()),
    }
}

fn failed<T>(message: String) -> Result<T, TypeTextError> {
    Err(TypeTextError(message))
}

struct Reader<'a> {
    whole: &'a str,
}

impl Reader<'_> {
    fn schema(&self, ty: &TsType, depth: usize) -> Result<Value, TypeTextError> {
        if depth > MAX_TYPE_DEPTH {
            return failed(format!(
                "the type is nested deeper than {MAX_TYPE_DEPTH} levels"
            ));
        }
        let inner = |ty: &TsType| self.schema(ty, depth + 1);
        match ty {
            TsType::TsKeywordType(keyword) => self.keyword(keyword),
            TsType::TsLitType(literal) => self.literal(&literal.lit),
            TsType::TsParenthesizedType(own) => inner(&own.type_ann),
            TsType::TsArrayType(TsArrayType { elem_type, .. }) => {
                Ok(json!({ "type": "array", "items": inner(elem_type)? }))
            }
            TsType::TsTypeOperator(operator) if operator.op == TsTypeOperatorOp::ReadOnly => {
                inner(&operator.type_ann)
            }
            TsType::TsTupleType(tuple) => self.tuple(tuple, depth),
            TsType::TsTypeLit(object) => self.object(object, depth),
            TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsUnionType(union)) => {
                self.union(union, depth)
            }
            TsType::TsUnionOrIntersectionType(_) => {
                self.refused(ty.span(), "write the properties of both in one object")
            }
            TsType::TsTypeRef(reference) => self.reference(reference, depth),
            _ => self.refused(ty.span(), "write a type of JSON values"),
        }
    }

    fn keyword(&self, keyword: &TsKeywordType) -> Result<Value, TypeTextError> {
        match keyword.kind {
            TsKeywordTypeKind::TsStringKeyword => Ok(json!({ "type": "string" })),
            TsKeywordTypeKind::TsNumberKeyword => Ok(json!({ "type": "number" })),
            TsKeywordTypeKind::TsBooleanKeyword => Ok(json!({ "type": "boolean" })),
            TsKeywordTypeKind::TsNullKeyword => Ok(json!({ "type": "null" })),
            TsKeywordTypeKind::TsObjectKeyword => Ok(json!({ "type": "object" })),
            TsKeywordTypeKind::TsAnyKeyword | TsKeywordTypeKind::TsUnknownKeyword => Ok(json!({})),
            TsKeywordTypeKind::TsUndefinedKeyword => self.refused(
                keyword.span,
                "write an optional property with \"?\", or null",
            ),
            _ => self.refused(keyword.span, "JSON has no such values"),
        }
    }

    fn tuple(&self, tuple: &TsTupleType, depth: usize) -> Result<Value, TypeTextError> {
        let mut items = Vec::new();
        for element in &tuple.elem_types {
            if matches!(
                &*element.ty,
                TsType::TsOptionalType(_) | TsType::TsRestType(_)
            ) {
                let advice = "optional and rest elements of a tuple are not supported";
                return self.refused(element.span, advice);
            }
            items.push(self.schema(&element.ty, depth + 1)?);
        }
        let count = items.len();
        let mut schema = json!({ "type": "array", "minItems": count, "maxItems": count });
        if count > 0 {
            schema["prefixItems"] = items.into();
        }
        Ok(schema)
    }

    fn literal(&self, literal: &TsLit) -> Result<Value, TypeTextError> {
        match literal {
            TsLit::Str(text) => match text.value.as_str() {
                Some(text) => Ok(json!({ "const": text })),
                None => self.refused(text.span, "the text has a lone surrogate"),
            },
            TsLit::Number(number) => match serde_json::Number::from_f64(number.value) {
                Some(_) => Ok(json!({ "const": plain_number(number.value) })),
                None => self.refused(number.span, "JSON has no such number"),
            },
            TsLit::Bool(truth) => Ok(json!({ "const": truth.value })),
            other => self.refused(other.span(), "JSON has no such values"),
        }
    }

    fn object(&self, object: &TsTypeLit, depth: usize) -> Result<Value, TypeTextError> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut others = Value::Bool(false);
        for member in &object.members {
            match member {
                TsTypeElement::TsPropertySignature(property) => {
                    let Some(name) = property_name(&property.key, property.computed) else {
                        return self.refused(property.span, "write the property's name as it is");
                    };
                    if name.starts_with(RESERVED) {
                        return failed(format!(
                            "the property {name:?} has a reserved name; use a different name"
                        ));
                    }
                    let schema = match &property.type_ann {
                        Some(annotation) => self.schema(&annotation.type_ann, depth + 1)?,
                        None => json!({}),
                    };
                    if !property.optional {
                        required.push(Value::from(name.as_str()));
                    }
                    if properties.insert(name.clone(), schema).is_some() {
                        return failed(format!("the property {name:?} is declared twice"));
                    }
                }
                TsTypeElement::TsIndexSignature(signature) => {
                    let over_string = match signature.params.as_slice() {
                        [TsFnParam::Ident(name)] => name
                            .type_ann
                            .as_ref()
                            .is_some_and(|a| is_string(&a.type_ann)),
                        _ => false,
                    };
                    if !over_string {
                        return self.refused(signature.span, "write [key: string]");
                    }
                    others = match &signature.type_ann {
                        Some(annotation) => self.schema(&annotation.type_ann, depth + 1)?,
                        None => json!({}),
                    };
                }
                other => return self.refused(other.span(), "JSON has no functions"),
            }
        }
        let mut schema = json!({ "type": "object" });
        if !properties.is_empty() {
            schema["properties"] = properties.into();
        }
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        schema["additionalProperties"] = others;
        Ok(schema)
    }

    fn union(&self, union: &TsUnionType, depth: usize) -> Result<Value, TypeTextError> {
        let all = union.types.iter().map(|ty| self.schema(ty, depth + 1));
        let all: Vec<Value> = all.collect::<Result<_, _>>()?;
        // A union of constants is an enum.
        let constants = all.iter().map(|schema| schema.get("const").cloned());
        match constants.collect::<Option<Vec<Value>>>() {
            Some(constants) => Ok(json!({ "enum": constants })),
            None => Ok(json!({ "anyOf": all })),
        }
    }

    fn reference(&self, reference: &TsTypeRef, depth: usize) -> Result<Value, TypeTextError> {
        let TsEntityName::Ident(name) = &reference.type_name else {
            return self.refused(reference.span, "write the type itself");
        };
        let parameters: &[Box<TsType>] = match &reference.type_params {
            Some(parameters) => &parameters.params,
            None => &[],
        };
        match (name.sym.as_str(), parameters) {
            ("Array" | "ReadonlyArray", [item]) => {
                Ok(json!({ "type": "array", "items": self.schema(item, depth + 1)? }))
            }
            ("Record", [key, value]) if is_string(key) => Ok(json!({
                "type": "object",
                "additionalProperties": self.schema(value, depth + 1)?,
            })),
            ("Date", []) => self.refused(reference.span, "JSON has no dates; write string"),
            _ => self.refused(reference.span, "write the type itself"),
        }
    }

    fn refused<T>(&self, span: Span, advice: &str) -> Result<T, TypeTextError> {
        let text = self.whole.get(parse::range(span)).unwrap_or_default();
        let shown: String = text.chars().take(40).collect();
        failed(format!(
            "the type {shown:?} cannot be a JSON Schema: {advice}"
        ))
    }
}

fn is_string(ty: &TsType) -> bool {
    matches!(ty, TsType::TsKeywordType(keyword)
        if keyword.kind == TsKeywordTypeKind::TsStringKeyword)
}

fn property_name(key: &Expr, computed: bool) -> Option<String> {
    match key {
        Expr::Ident(name) if !computed => Some(name.sym.to_string()),
        Expr::Lit(Lit::Str(text)) => text.value.as_str().map(str::to_owned),
        Expr::Lit(Lit::Num(number)) if !computed => Some(plain_number(number.value).to_string()),
        _ => None,
    }
}

/// A JSON number; whole numbers have no fraction.
fn plain_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9.0e15 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}
