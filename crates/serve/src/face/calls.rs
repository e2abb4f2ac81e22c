//! Calls of the tools that the client sees: which tool a name means, and its answer.

use std::sync::Arc;

use callgate::Gate;
use callgate::settings::Detail;
use callgate_text::nearest;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use super::approvals::Asked;
use super::call_tool::ToolCall;
use super::search::{self, ToolSearch};
use super::tool_array::ToolArray;
use super::{Session, own_tools, server_tools};
use crate::arguments::quoted;
use crate::config::ToolMode;
use crate::runs::{ClientAsker, Purpose, ToolRequest};

/// The limit of arguments that an error repeats, in bytes.
const MAX_SHOWN_ARGUMENTS: usize = 500;

impl Session {
    /// Calls a tool that the client sees.
    pub(super) async fn answer_call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(reason) = self.service.waits() {
            return Ok(answer(Err(reason)));
        }
        let gate = self.gate(context).await?;
        let (mode, client) = (self.mode(context)?, self.client(context)?);
        let name: &str = &request.name;
        let is_native = mode == ToolMode::Native;
        let is_server_tool = is_native && gate.view().finds_tool(name).await;
        let mut is_own = own_tools::is_in_mode(name, mode);
        if is_own && is_server_tool {
            // If two tools have this name, the client sees one of them and calls that one.
            is_own = self
                .tools(&gate, None, mode, &client)
                .own()
                .any(|own| own == name);
        }
        let made = ToolRequest {
            params: request,
            context,
            client: &client,
            roots: &self.roots,
        };
        if is_own {
            return self.call_own(gate, made, mode).await;
        }
        if is_server_tool {
            let call = ToolCall {
                function: name.to_owned(),
                arguments: request.arguments.clone().unwrap_or_default(),
                any_result: client.is_stateless,
                is_for_model: false,
            };
            return self.call(gate, call, made).await;
        }
        let array = self.tools(&gate, None, mode, &client);
        if is_native && array.tools.iter().any(|tool| tool.name == name) {
            let gone = format!("{name} no longer exists: no server lists it");
            return Ok(answer(Err(gone)));
        }
        if !is_native && gate.view().finds_tool(name).await {
            let arguments = request.arguments.as_ref();
            return Ok(answer(Err(not_a_tool(mode, name, arguments))));
        }
        let message = unknown_tool(&gate, is_native, &array, name);
        Err(ErrorData::invalid_params(message, None))
    }

    async fn call(
        &self,
        gate: Arc<Gate>,
        call: ToolCall,
        request: ToolRequest<'_>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Err(wrong) = call.check(&gate).await {
            return Ok(answer(Err(wrong.to_string())));
        }
        let (mut made, described) = call.request();
        let asks = self.service.options.asks;
        let outside = self.service.runs.outside.clone();
        let limit = gate.limits().output_bytes;
        let calling = Arc::clone(&gate);
        let work = move |asker: Arc<ClientAsker>| async move {
            made = made.id(asker.run.id.as_str()).client(asker.name.clone());
            made = made.caller(Arc::<ClientAsker>::clone(&asker));
            if asks && let Some(asker) = outside.asker(&asker.run, Some(&asker)) {
                made = made.asker(asker);
            }
            call.answer(calling.call_with(made).await, limit)
        };
        let purpose = Purpose::new(Purpose::CALL, &described);
        let runs = &self.service.runs;
        runs.without_script(&gate, request, purpose, work).await
    }

    /// Searches for tools. If a model picks them and the client has a model, the client is asked.
    async fn search(
        &self,
        gate: Arc<Gate>,
        request: ToolRequest<'_>,
        full: Detail,
        asked: Asked,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.params.arguments.as_ref();
        let mut search = match ToolSearch::read(given, full) {
            Ok(search) => search,
            Err(wrong) => return Ok(answer(Err(wrong))),
        };
        if !search.is_by_model(&gate) || !request.client.capabilities.sampling {
            return Ok(answer(search.run(&gate, asked).await));
        }
        let described = Value::Object(given.cloned().unwrap_or_default()).to_string();
        let searching = Arc::clone(&gate);
        let work = |asker: Arc<ClientAsker>| async move {
            // The client's model picks, before the configured one.
            search.request.caller = Some(asker);
            Ok(result(search.run(&searching, asked).await))
        };
        let purpose = Purpose::new(Purpose::SEARCH, &described);
        let runs = &self.service.runs;
        runs.without_script(&gate, request, purpose, work).await
    }

    /// Calls one of our own tools.
    async fn call_own(
        &self,
        gate: Arc<Gate>,
        request: ToolRequest<'_>,
        mode: ToolMode,
    ) -> Result<CallToolResponse, ErrorData> {
        let name: &str = &request.params.name;
        let given = request.params.arguments.as_ref();
        let full = own_tools::full_detail(mode);
        let runs = &self.service.runs;
        let asked = Asked::of(&self.service.options, &runs.outside, mode, request.client);
        Ok(answer(match name {
            own_tools::RUN_SCRIPT => return runs.run_script(gate, request).await,
            own_tools::WAIT => return runs.wait(request, false).await,
            own_tools::CANCEL_RUN => return runs.wait(request, true).await,
            own_tools::SEARCH_TOOLS => return self.search(gate, request, full, asked).await,
            own_tools::GET_TOOL_DETAILS => search::get_tool_details(&gate, given, full, asked),
            own_tools::LIST_SERVERS => server_tools::list_servers(&gate, given),
            own_tools::ENABLE_SERVER => server_tools::enable_server(&gate, given).await,
            own_tools::DISABLE_SERVER => server_tools::disable_server(&gate, given).await,
            _ => match ToolCall::read(&gate, given, request.client.is_stateless).await {
                Ok(call) => return self.call(gate, call, request).await,
                Err(wrong) => Err(wrong),
            },
        }))
    }
}

/// The answer of one of our own tools. A wrong call is a result for the model, not a protocol
/// error that its client hides (MCP 2025-11-25, server/tools, "Error Handling").
fn answer(text: Result<String, String>) -> CallToolResponse {
    result(text).into()
}

fn result(text: Result<String, String>) -> CallToolResult {
    match text {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
    }
}

/// The message for a function that is called as a tool: the call that was meant.
fn not_a_tool(mode: ToolMode, function: &str, arguments: Option<&JsonObject>) -> String {
    let arguments = arguments.cloned().unwrap_or_default();
    let mut shown = Value::Object(arguments).to_string();
    if shown.len() > MAX_SHOWN_ARGUMENTS {
        "{ … }".clone_into(&mut shown);
    }
    let call = match mode {
        ToolMode::Discovery => {
            format!("call_tool with {{ \"name\": {function:?}, \"args\": {shown} }}")
        }
        _ => format!("run_script with the code: return await {function}({shown})"),
    };
    format!("{function} is a function, not a tool, and was not called: call {call}")
}

/// The message for a name that no tool has. It names only tools that the client sees.
fn unknown_tool(gate: &Gate, is_native: bool, array: &ToolArray, name: &str) -> String {
    let own: Vec<&str> = array.own().collect();
    let quoted = quoted(name);
    match nearest(name, own.iter().copied()) {
        Some(near) => format!("no tool is named {quoted}; did you mean {near:?}?"),
        None if is_native && own.contains(&own_tools::SEARCH_TOOLS) => {
            search::unknown_tool(gate, name)
        }
        None if is_native => gate.view().unknown_tool_message(name),
        None => format!("no tool is named {quoted}; there are {}", own.join(", ")),
    }
}
