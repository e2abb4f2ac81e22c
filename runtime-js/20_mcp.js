// `mcp`, the function stubs and their error classes.
//
// A call is one op: the input is sent as JSON text. Available replies are delivered together, as JSON
// texts. The number of concurrent calls is not limited here.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayIsArray,
    ArrayPrototypeIncludes,
    ArrayPrototypeJoin,
    Error,
    ErrorCaptureStackTrace,
    JSONStringify,
    NumberMAX_SAFE_INTEGER,
    ObjectDefineProperty,
    ObjectFreeze,
    ObjectKeys,
    Promise,
    PromiseReject,
    RangeError,
    RegExpPrototypeTest,
    SafeMap,
    StringPrototypeIndexOf,
    StringPrototypeSlice,
    StringPrototypeToWellFormed,
    SymbolToStringTag,
    SyntaxError,
    TypeError,
  } = primordials;
  const { op_callgate_call, op_callgate_cancel, op_callgate_emit } = core.ops;
  const shared = internals.callgate;
  const { parseJson, push } = shared;

  const NAME_CHARS = 512;

  // The base class of all, so that one `instanceof` distinguishes a failed call from a mistake in the
  // script.
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
  class McpDryRunError extends McpError {}
  class McpExtractError extends McpError {}
  const classes = [
    McpToolError,
    McpProtocolError,
    McpTimeoutError,
    McpDeniedError,
    McpDryRunError,
    McpExtractError,
  ];
  shared.errors = {
    McpError,
    McpToolError,
    McpProtocolError,
    McpTimeoutError,
    McpDeniedError,
    McpDryRunError,
    McpExtractError,
  };

  function hide(object, key, value) {
    ObjectDefineProperty(object, key, {
      __proto__: null,
      value,
      writable: true,
      enumerable: false,
      configurable: true,
    });
  }

  // The error for a reply of [message, fields], with the stack of the call.
  function thrown(errorClass, reply, site) {
    const error = new errorClass(reply[0]);
    const fields = parseJson(reply[1]);
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

  // Gives the error the stack of `site`, which was created at the script's call; V8 builds that stack
  // only now. It is missing if the script has removed `Error.stackTraceLimit`.
  function calledAt(error, site) {
    const stack = site.stack;
    const frames = typeof stack === "string" ? StringPrototypeIndexOf(stack, "\n") : -1;
    hide(error, "stack", shared.headline(error) + (frames < 0 ? "" : StringPrototypeSlice(stack, frames)));
    shared.setPlace(error, site);
    return error;
  }

  function inputText(name, input) {
    if (input === undefined) return "{}";
    if (input === null || typeof input !== "object" || ArrayIsArray(input)) {
      const got = input === null ? "null" : ArrayIsArray(input) ? "an array" : `a ${typeof input}`;
      throw new TypeError(`${name}: the input must be an object, not ${got}`);
    }
    let text;
    let problem;
    try {
      text = shared.jsonOf(input, "arguments", (_part, message) => {
        problem = message;
        throw new TypeError(message);
      });
    } catch (error) {
      if (problem !== undefined) throw new TypeError(`${name}: ${problem}`);
      throw new TypeError(`${name}: the input cannot be sent as JSON: ${shared.headline(error)}`, {
        cause: error,
      });
    }
    if (text === undefined || text[0] !== "{") {
      throw new TypeError(`${name}: the input must be an object, and its toJSON gives something else`);
    }
    return text;
  }

  // No options.
  const NONE = ObjectFreeze({ __proto__: null });

  // The options of `mcp.searchTools` in addition to those of every call.
  const SEARCH = ["detail", "limit", "server", "by"];

  function checkOptions(name, options, signal, timeoutMs, others) {
    if (typeof options !== "object" || ArrayIsArray(options)) {
      const got = ArrayIsArray(options) ? "an array" : kindOf(options);
      throw new TypeError(`${name}: the options must be an object, not ${got}`);
    }
    const keys = ObjectKeys(options);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (key === "signal" || key === "timeoutMs") continue;
      if (others !== undefined && ArrayPrototypeIncludes(others, key)) continue;
      const near = key === "timeout" ? "; did you mean `timeoutMs`?" : "";
      throw new TypeError(`${name}: there is no option \`${StringPrototypeSlice(key, 0, 80)}\`${near}`);
    }
    if (signal !== undefined && !shared.signals.is(signal)) {
      throw new TypeError(`${name}: \`signal\` must be an AbortSignal, not ${kindOf(signal)}`);
    }
    if (timeoutMs === undefined) return;
    if (typeof timeoutMs !== "number") {
      throw new TypeError(`${name}: \`timeoutMs\` must be a number, not ${kindOf(timeoutMs)}`);
    }
    if (!(timeoutMs >= 1 && timeoutMs <= NumberMAX_SAFE_INTEGER)) {
      throw new RangeError(`${name}: \`timeoutMs\` must be 1 or more milliseconds, not ${timeoutMs}`);
    }
  }

  // The open calls by id.
  const waiting = new SafeMap();

  function invoke(name, input, given, caller, others = undefined) {
    const site = { __proto__: null, name: "Error", message: "" };
    ErrorCaptureStackTrace(site, caller);
    const options = given ?? NONE;
    let signal, timeoutMs;
    try {
      // Read only once, here: an error of a getter is the script's own and keeps its place.
      signal = options.signal ?? undefined;
      timeoutMs = options.timeoutMs;
    } catch (error) {
      return PromiseReject(error);
    }
    let id;
    try {
      const text = inputText(name, input);
      checkOptions(name, options, signal, timeoutMs, others);
      if (signal !== undefined && shared.signals.isAborted(signal)) {
        return PromiseReject(shared.signals.reason(signal));
      }
      id = op_callgate_call(name, text, timeoutMs ?? 0, signal !== undefined);
    } catch (error) {
      return PromiseReject(calledAt(error, site));
    }
    return new Promise((resolve, reject) => {
      const call = { __proto__: null, resolve, reject, site, signal, abort: undefined };
      waiting.set(id, call);
      if (signal === undefined) return;
      call.abort = () => {
        waiting.delete(id);
        op_callgate_cancel(id);
        reject(shared.signals.reason(signal));
      };
      shared.signals.follow(signal, call.abort);
    });
  }

  // The kinds of reply for `deliver`; src/replies.rs of the worker has the same numbers. The numbers
  // between these two are the indices of `classes`, from 1.
  const VALUE = 0, BROKEN = 7;

  // Settles calls. The flat list has id, kind and value of each reply.
  shared.deliver = (list) => {
    for (let i = 0; i < list.length; i += 3) {
      const call = waiting.get(list[i]);
      if (call === undefined) continue;
      waiting.delete(list[i]);
      if (call.signal !== undefined) shared.signals.unfollow(call.signal, call.abort);
      settle(call, list[i + 1], list[i + 2]);
    }
  };

  function settle(call, kind, value) {
    if (kind === VALUE) {
      try {
        call.resolve(parseJson(value));
        return;
      } catch {
        kind = BROKEN;
        value = "the result of the call is not JSON";
      }
    }
    try {
      call.reject(
        kind === BROKEN ? calledAt(new TypeError(value), call.site) : thrown(classes[kind - 1], value, call.site),
      );
    } catch (error) {
      call.reject(error);
    }
  }

  // The content blocks of a result that is not only text: an object with only them.
  function blocksOf(result) {
    if (result === null || typeof result !== "object" || ArrayIsArray(result)) return undefined;
    const keys = ObjectKeys(result);
    if (keys.length !== 1 || keys[0] !== "content") return undefined;
    return ArrayIsArray(result.content) ? result.content : undefined;
  }

  // The texts of content blocks.
  function textsOf(blocks) {
    const texts = [];
    for (let i = 0; i < blocks.length; i++) {
      const block = blocks[i];
      const text = block?.type === "resource" ? block.resource?.text : block?.text;
      if (typeof text === "string") push(texts, text);
    }
    return texts;
  }

  // The texts of a result or of one content block; undefined for a value.
  function textsIn(result) {
    if (typeof result === "string") return [result];
    const blocks = blocksOf(result);
    if (blocks !== undefined) return textsOf(blocks);
    const texts = result?.type === "text" || result?.type === "resource" ? textsOf([result]) : [];
    return texts.length === 0 ? undefined : texts;
  }

  // The JSON value of one text; for several texts, the list of their values or the value of all joined.
  function valueOf(texts) {
    if (texts.length === 1) return parseJson(texts[0]);
    const values = [];
    try {
      for (let i = 0; i < texts.length; i++) push(values, parseJson(texts[i]));
      return values;
    } catch (error) {
      try {
        return parseJson(ArrayPrototypeJoin(texts, "\n"));
      } catch {
        throw error;
      }
    }
  }

  // Maximum members and characters of a name for `textMember`.
  const MEMBERS = 64, MEMBER_CHARS = 80;

  // `.content` for an object whose one string is in that member.
  function textMember(value) {
    if (value === null || typeof value !== "object" || ArrayIsArray(value)) return undefined;
    const keys = ObjectKeys(value);
    if (keys.length > MEMBERS) return undefined;
    let found;
    for (let i = 0; i < keys.length; i++) {
      if (typeof value[keys[i]] !== "string") continue;
      if (found !== undefined || keys[i].length > MEMBER_CHARS) return undefined;
      found = keys[i];
    }
    if (found === undefined) return undefined;
    return shared.isIdentifier(found) ? `.${found}` : `[${JSONStringify(found)}]`;
  }

  function kindOf(value) {
    if (value === null || value === undefined) return `${value}`;
    if (ArrayIsArray(value)) return "an array";
    return typeof value === "object" ? "an object" : `a ${typeof value}`;
  }

  // The members of each type of emitted block: the required ones, then the optional ones. Further
  // members of a block are dropped.
  const BLOCKS = {
    __proto__: null,
    text: [["text"], []],
    image: [["data", "mimeType"], []],
    audio: [["data", "mimeType"], []],
    resource_link: [["uri", "name"], ["title", "description", "mimeType"]],
    resource: [["uri"], ["mimeType", "text", "blob"]],
  };

  // Counts of the emitted blocks that have a mark in the output.
  const emitted = { __proto__: null, image: 0, audio: 0, resource: 0 };

  // Marks in the output that a block of this type was emitted.
  function mark(type) {
    if (type === "text") return;
    const kind = type === "resource_link" ? "resource" : type;
    emitted[kind]++;
    shared.printMark(`[${kind} ${emitted[kind]}]`);
  }

  // The block as JSON text, its part that must be base64, and its type.
  function emittable(block) {
    if (block === null || typeof block !== "object" || ArrayIsArray(block)) {
      throw new TypeError(`mcp.emit: a content block must be an object, not ${kindOf(block)}`);
    }
    const type = block.type;
    const members = typeof type === "string" ? BLOCKS[type] : undefined;
    if (members === undefined) {
      const got = typeof type === "string" ? JSONStringify(StringPrototypeSlice(type, 0, 80)) : kindOf(type);
      throw new TypeError(
        `mcp.emit: a content block's \`type\` must be one of ${ArrayPrototypeJoin(ObjectKeys(BLOCKS), ", ")}, not ${got}`,
      );
    }
    const from = type === "resource" ? block.resource : block;
    if (from === null || typeof from !== "object") {
      throw new TypeError(`mcp.emit: a resource must be an object, not ${kindOf(from)}`);
    }
    const out = { __proto__: null };
    if (type !== "resource") out.type = type;
    take(type, from, out, members[0], true);
    take(type, from, out, members[1], false);
    if (type === "resource" && (out.text === undefined) === (out.blob === undefined)) {
      throw new TypeError("mcp.emit: a resource has either `text` or `blob`");
    }
    if (out.uri !== undefined && !RegExpPrototypeTest(URI, out.uri)) {
      throw new TypeError("mcp.emit: `uri` must be a URI with a scheme");
    }
    if (out.mimeType !== undefined && !RegExpPrototypeTest(MIME_TYPE, out.mimeType)) {
      throw new TypeError("mcp.emit: `mimeType` must be a type such as image/png");
    }
    const data = out.data ?? out.blob ?? "";
    return [JSONStringify(type === "resource" ? { __proto__: null, type, resource: out } : out), data, type];
  }

  // crates/callgate/src/report/emitted.rs makes the same check.
  const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/;
  const MIME_TYPE = /^[!-.0-~]+\/[ -~]+$/;

  function take(type, from, to, members, must) {
    for (let i = 0; i < members.length; i++) {
      const value = from[members[i]];
      if (typeof value === "string") to[members[i]] = StringPrototypeToWellFormed(value);
      else if (must || (value !== undefined && value !== null)) {
        throw new TypeError(`mcp.emit: \`${members[i]}\` of ${type} must be a string, not ${kindOf(value)}`);
      }
    }
  }

  // The blocks to emit, in a new list.
  function toEmit(content) {
    if (typeof content === "string") return [{ __proto__: null, type: "text", text: content }];
    const blocks = ArrayIsArray(content) ? content : blocksOf(content);
    return blocks === undefined ? [content] : blocks;
  }

  const mcp = {
    __proto__: null,
    emit(content) {
      const site = { __proto__: null, name: "Error", message: "" };
      ErrorCaptureStackTrace(site, mcp.emit);
      try {
        const blocks = toEmit(content);
        const texts = [];
        // All are checked before the first is sent.
        for (let i = 0; i < blocks.length; i++) push(texts, emittable(blocks[i]));
        for (let i = 0; i < texts.length; i++) {
          op_callgate_emit(texts[i][0], texts[i][1]);
          mark(texts[i][2]);
        }
      } catch (error) {
        throw calledAt(error, site);
      }
    },
    text(result) {
      // The result of a tool without content.
      if (result === null) return "";
      const texts = textsIn(result);
      if (texts !== undefined && texts.length > 0) return ArrayPrototypeJoin(texts, "\n");
      if (texts !== undefined) {
        throw new TypeError("mcp.text: none of the content is text; look at the result's `content`");
      }
      const member = textMember(result);
      throw new TypeError(
        member === undefined
          ? `mcp.text: the result is ${kindOf(result)} and no text; use it as it is`
          : `mcp.text: the result is an object; its text is \`result${member}\``,
      );
    },
    json(result) {
      const texts = textsIn(result);
      // Structured content is already a value.
      if (texts === undefined || texts.length === 0) return result;
      try {
        return valueOf(texts);
      } catch (error) {
        const what = texts.length === 1
          ? "the text of the result is"
          : `of the ${texts.length} texts of the result, which mcp.blocks gives, one is`;
        throw new SyntaxError(`mcp.json: ${what} not JSON: ${error.message}`);
      }
    },
    blocks(result) {
      if (result === null) return [];
      if (typeof result === "string") return [{ type: "text", text: result }];
      const blocks = blocksOf(result);
      if (blocks !== undefined) return blocks;
      throw new TypeError(
        `mcp.blocks: the result is ${kindOf(result)} and no content blocks; use it as it is`,
      );
    },
    callTool(name, input = undefined, options = undefined) {
      if (typeof name !== "string" || name.length > NAME_CHARS) {
        const got = typeof name === "string" ? `${name.length} characters` : kindOf(name);
        const how = typeof name === "object" ? "; write mcp.callTool(name, input)" : "";
        return PromiseReject(
          new TypeError(`mcp.callTool: the name must be a string of at most ${NAME_CHARS} characters, not ${got}${how}`),
        );
      }
      return invoke(name, input, options, mcp.callTool);
    },
    searchTools(query, options = undefined) {
      let input;
      try {
        // Read here: an error of a getter is the script's own.
        const { detail, limit, server, by } = options ?? NONE;
        input = { __proto__: null, query, detail, limit, server, by };
      } catch (error) {
        return PromiseReject(error);
      }
      return invoke("mcp.searchTools", input, options, mcp.searchTools, SEARCH);
    },
    getToolDetails(names, options = undefined) {
      return invoke("mcp.getToolDetails", { __proto__: null, names }, options, mcp.getToolDetails);
    },
    extract(value, schema, options = undefined) {
      if (value === undefined) {
        return PromiseReject(new TypeError("mcp.extract: there is no value to extract from, but undefined"));
      }
      if (typeof value === "function" || typeof value === "symbol") {
        return PromiseReject(new TypeError(`mcp.extract: the value must be JSON, not ${kindOf(value)}`));
      }
      return invoke("mcp.extract", { __proto__: null, value, schema }, options, mcp.extract);
    },
  };
  ObjectDefineProperty(mcp, SymbolToStringTag, { __proto__: null, value: "mcp" });
  shared.mcp = mcp;

  // Adds the arguments and the standard input of the script, and locks `mcp`.
  shared.setInput = (args, stdin) => {
    mcp.args = ObjectFreeze(args);
    mcp.stdin = stdin;
    ObjectFreeze(mcp);
  };

  // The global function `name`. There may be thousands, and V8 takes three times as long to create a
  // method of that name.
  shared.makeStub = (name) => {
    const stub = (input, options = undefined) => invoke(name, input, options, stub);
    ObjectDefineProperty(stub, "name", { __proto__: null, value: name, configurable: true });
    return stub;
  };
})(globalThis);
