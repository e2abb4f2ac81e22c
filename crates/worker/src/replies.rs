//! Converts replies to one JavaScript list.

use callgate_sandbox::wire::{ErrorClass, Reply};
use deno_core::v8;

/// The kinds of reply for `deliver` in `20_mcp.js`, which has the same numbers.
const VALUE: i32 = 0;
const TOOL: i32 = 1;
const PROTOCOL: i32 = 2;
const TIMEOUT: i32 = 3;
const DENIED: i32 = 4;
const DRY_RUN: i32 = 5;
const EXTRACT: i32 = 6;
const BROKEN: i32 = 7;

/// Id, kind and value of each reply, flat. The value is the result's JSON text, or the error's message
/// and fields, or the fault of the reply. `None` if V8 is stopped.
pub(super) fn to_list<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    replies: Vec<Reply>,
) -> Option<v8::Local<'s, v8::Value>> {
    let mut list: Vec<v8::Local<'s, v8::Value>> = Vec::with_capacity(3 * replies.len());
    for reply in replies {
        let id = v8::Number::new(scope, reply.call as f64).into();
        let (kind, value) = match reply.outcome {
            Ok(json) => match v8::String::new(scope, &json) {
                Some(json) => (VALUE, json.into()),
                None => broken(scope, "the result is longer than a string can be")?,
            },
            Err(thrown) => {
                let message = v8::String::new(scope, &thrown.message);
                let fields = v8::String::new(scope, &thrown.fields);
                let kind = match thrown.class {
                    ErrorClass::Tool => TOOL,
                    ErrorClass::Protocol => PROTOCOL,
                    ErrorClass::Timeout => TIMEOUT,
                    ErrorClass::Denied => DENIED,
                    ErrorClass::DryRun => DRY_RUN,
                    ErrorClass::Extract => EXTRACT,
                };
                match (message, fields) {
                    (Some(message), Some(fields)) => {
                        let parts = [message.into(), fields.into()];
                        (kind, v8::Array::new_with_elements(scope, &parts).into())
                    }
                    _ => broken(scope, "the error is longer than a string can be")?,
                }
            }
        };
        let kind = v8::Integer::new(scope, kind).into();
        list.extend([id, kind, value]);
    }
    Some(v8::Array::new_with_elements(scope, &list).into())
}

fn broken<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    fault: &str,
) -> Option<(i32, v8::Local<'s, v8::Value>)> {
    Some((BROKEN, v8::String::new(scope, fault)?.into()))
}
