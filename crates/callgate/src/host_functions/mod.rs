//! Functions of `mcp` that the host answers itself.

pub(crate) mod extract;
pub(crate) mod lookup;

use callgate_gate::CallOptions;
use callgate_sandbox::{ErrorClass, Thrown};
use serde_json::json;
use serde_json::value::RawValue;

use crate::names::HostFunction;
use crate::script_calls::RunCalls;
use crate::script_errors::own_error;

impl RunCalls {
    /// Answers a call, within the script's time limit for it.
    pub(crate) async fn call_host(
        &self,
        function: HostFunction,
        input: &RawValue,
        options: &CallOptions,
    ) -> Result<Box<RawValue>, Thrown> {
        let line = options.line;
        let answer = async {
            match function {
                HostFunction::Extract => self.extract(input, line).await,
                _ => self.look_up(function, input, line).await,
            }
        };
        let Some(limit) = options.timeout else {
            return answer.await;
        };
        let answer = tokio::time::timeout(limit, answer).await;
        answer.unwrap_or_else(|_| {
            let name = function.name();
            let message = format!("{name} gave no answer within {} ms", limit.as_millis());
            let fields = json!({ "tool": name, "retryable": true });
            Err(own_error(ErrorClass::Timeout, message, &fields))
        })
    }
}
