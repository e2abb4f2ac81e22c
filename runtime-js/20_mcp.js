// `mcp`, the function stubs and the classes of the errors they throw.
//
// A call is one op: the input goes out as JSON text, the answer comes back as a value that was
// parsed once. Any number of calls can be under way.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayIsArray,
    Error,
    ErrorCaptureStackTrace,
    JSONParse,
    JSONStringify,
    ObjectDefineProperty,
    ObjectFreeze,
    ObjectKeys,
    StringPrototypeIndexOf,
    StringPrototypeSlice,
    SymbolToStringTag,
    SyntaxError,
    TypeError,
  } = primordials;
  const { op_callgate_call } = core.ops;
  const shared = internals.callgate;

  const NAME_CHARS = 512;

  // The base class of all of them, so that one `instanceof` tells a failed call from a mistake in
  // the script.
  class McpError extends Error {
    constructor(message, options) {
      super(message, options);
      hide(this, "name", new.target.name);
    }
  }
  class McpToolError extends McpError {}
  class McpProtocolError extends McpError {}
  class McpTimeoutError extends McpError {}
  class McpDeniedError extends McpError {}
  const classes = [McpToolError, McpProtocolError, McpTimeoutError, McpDeniedError];
  shared.errors = { McpError, McpToolError, McpProtocolError, McpTimeoutError, McpDeniedError };

  function hide(object, key, value) {
    ObjectDefineProperty(object, key, {
      __proto__: null,
      value,
      writable: true,
      enumerable: false,
      configurable: true,
    });
  }

  // The error for a reply [class, message, fields], with the stack of the call.
  function thrown(reply, site) {
    const error = new classes[reply[0]](reply[1]);
    const fields = JSONParse(reply[2]);
    const keys = ObjectKeys(fields);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (key === "stack" || key === "message" || key === "name" || key === "__proto__") continue;
      ObjectDefineProperty(error, key, {
        __proto__: null,
        value: fields[key],
        writable: true,
        enumerable: true,
        configurable: true,
      });
    }
    return calledAt(error, site);
  }

  // Gives the error the stack of `site`, which was made where the script called; that stack is only
  // put together now. There is none when the script took `Error.stackTraceLimit` away.
  function calledAt(error, site) {
    const stack = site.stack;
    const frames = typeof stack === "string" ? StringPrototypeIndexOf(stack, "\n") : -1;
    hide(error, "stack", shared.headline(error) + (frames < 0 ? "" : StringPrototypeSlice(stack, frames)));
    shared.setPosition(error, shared.positionOf(site));
    return error;
  }

  function inputText(name, input) {
    if (input === undefined) return "{}";
    if (input === null || typeof input !== "object" || ArrayIsArray(input)) {
      const got = input === null ? "null" : ArrayIsArray(input) ? "an array" : `a ${typeof input}`;
      throw new TypeError(`${name}: the input must be an object, not ${got}`);
    }
    let text;
    try {
      text = JSONStringify(input);
    } catch (error) {
      throw new TypeError(`${name}: the input cannot be sent as JSON: ${shared.headline(error)}`, {
        cause: error,
      });
    }
    if (text === undefined || text[0] !== "{") {
      throw new TypeError(`${name}: the input must be an object, and its toJSON gives something else`);
    }
    return text;
  }

  async function invoke(name, input, caller) {
    const site = { __proto__: null, name: "Error", message: "" };
    ErrorCaptureStackTrace(site, caller);
    let text;
    try {
      text = inputText(name, input);
    } catch (error) {
      throw calledAt(error, site);
    }
    const reply = await op_callgate_call(name, text);
    if (reply.failed !== undefined) throw thrown(reply.failed, site);
    return reply.value;
  }

  // The content blocks of a result that is more than text: an object with them and nothing else.
  function blocksOf(result) {
    if (result === null || typeof result !== "object" || ArrayIsArray(result)) return undefined;
    const keys = ObjectKeys(result);
    if (keys.length !== 1 || keys[0] !== "content") return undefined;
    return ArrayIsArray(result.content) ? result.content : undefined;
  }

  // The text of content blocks, one line feed between two; undefined if there is none.
  function textOf(blocks) {
    let text;
    for (let i = 0; i < blocks.length; i++) {
      const block = blocks[i];
      const part = block?.type === "resource" ? block.resource?.text : block?.text;
      if (typeof part === "string") text = text === undefined ? part : `${text}\n${part}`;
    }
    return text;
  }

  function kindOf(value) {
    if (value === null || value === undefined) return `${value}`;
    if (ArrayIsArray(value)) return "an array";
    return typeof value === "object" ? "an object" : `a ${typeof value}`;
  }

  const mcp = {
    __proto__: null,
    text(result) {
      if (typeof result === "string") return result;
      // What a tool gives that answers with nothing.
      if (result === null) return "";
      const blocks = blocksOf(result);
      const text = blocks && textOf(blocks);
      if (text !== undefined) return text;
      throw new TypeError(
        blocks
          ? "mcp.text: none of the content is text; look at the result's `content`"
          : `mcp.text: the result is ${kindOf(result)} and no text; use it as it is`,
      );
    },
    json(result) {
      const blocks = blocksOf(result);
      const text = typeof result === "string" ? result : blocks && textOf(blocks);
      // Structured content is a value already.
      if (text === undefined) return result;
      try {
        return JSONParse(text);
      } catch (error) {
        throw new SyntaxError(`mcp.json: the text of the result is no JSON: ${error.message}`, { cause: error });
      }
    },
    callTool(name, input) {
      if (typeof name !== "string" || name.length > NAME_CHARS) {
        const got = typeof name === "string" ? `${name.length} characters` : `a ${typeof name}`;
        return primordials.PromiseReject(
          new TypeError(`mcp.callTool: the name must be a string of at most ${NAME_CHARS} characters, not ${got}`),
        );
      }
      return invoke(name, input, mcp.callTool);
    },
  };
  ObjectDefineProperty(mcp, SymbolToStringTag, { __proto__: null, value: "mcp" });
  shared.mcp = ObjectFreeze(mcp);

  // The global function `name`.
  shared.makeStub = (name) => {
    const stub = {
      [name](input) {
        return invoke(name, input, stub);
      },
    }[name];
    return stub;
  };
})(globalThis);
