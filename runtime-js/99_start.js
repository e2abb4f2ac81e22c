// The list of allowed globals, the lock on all others, and the run itself.
//
// `begin` is called once in a new worker, before it reports that it is ready; `prepare` and `run` are
// called once for its script.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayIsArray,
    DatePrototype,
    Error,
    FunctionPrototype,
    ObjectDefineProperty,
    ObjectGetOwnPropertyDescriptor,
    ObjectKeys,
    PromiseResolve,
    PromisePrototypeThen,
    ReflectApply,
    ReflectDeleteProperty,
    ReflectOwnKeys,
    SafeSet,
    SymbolToStringTag,
  } = primordials;
  const { op_callgate_done, op_callgate_proxy_target, op_callgate_rejection } = core.ops;
  const shared = internals.callgate;
  const { oneLine, push } = shared;

  // The kinds of end for `op_callgate_done`; src/isolate_link.rs of the worker has the same numbers.
  const UNDEFINED = 0, JSON_TEXT = 1, SHOWN = 2, THREW = 3;

  // Limits of the error report, in characters and in causes. The script's author gets the report.
  const NAME_CHARS = 200;
  const MESSAGE_CHARS = 16384;
  const STACK_CHARS = 16384;
  const CAUSE_CHARS = 1024;
  const CAUSES = 8;

  // The allowed globals of the language. All others are removed, so that a new V8 cannot add one
  // unnoticed. Excluded are SharedArrayBuffer and Atomics (a clock of high resolution and a way to
  // block), WebAssembly (a second compiler as attack surface) and eval (it is disabled in any case).
  const LANGUAGE = [
    "AggregateError", "Array", "AsyncDisposableStack", "BigInt", "BigInt64Array",
    "BigUint64Array", "Boolean", "DataView", "Date", "DisposableStack", "Error", "EvalError",
    "FinalizationRegistry", "Float16Array", "Float32Array", "Float64Array", "Function", "Infinity",
    "Int16Array", "Int32Array", "Int8Array", "Intl", "Iterator", "JSON", "Map", "Math", "NaN",
    "Number", "Object", "Promise", "Proxy", "RangeError", "ReferenceError", "Reflect", "RegExp",
    "Set", "String", "SuppressedError", "Symbol", "SyntaxError", "TypeError",
    "URIError", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap",
    "WeakRef", "WeakSet", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent",
    "escape", "globalThis", "isFinite", "isNaN", "parseFloat", "parseInt", "queueMicrotask",
    "undefined", "unescape",
  ];

  const GIVEN = [
    shared.errors,
    shared.eventGlobals,
    shared.urlGlobals,
    shared.webGlobals,
    { console: shared.console, mcp: shared.mcp },
  ];

  let ended = false;

  shared.begin = () => {
    const keep = new SafeSet();
    for (let i = 0; i < LANGUAGE.length; i++) keep.add(LANGUAGE[i]);
    const keys = ReflectOwnKeys(globalThis);
    for (let i = 0; i < keys.length; i++) {
      if (!keep.has(keys[i])) ReflectDeleteProperty(globalThis, keys[i]);
    }
    for (let g = 0; g < GIVEN.length; g++) {
      const names = ObjectKeys(GIVEN[g]);
      for (let i = 0; i < names.length; i++) give(names[i], GIVEN[g][names[i]], false);
    }
    give("queueMicrotask", (callback) => {
      if (typeof callback !== "function") {
        throw new primordials.TypeError("queueMicrotask needs a function to call");
      }
      PromisePrototypeThen(PromiseResolve(), () => {
        try {
          ReflectApply(callback, undefined, []);
        } catch (error) {
          shared.fail(error);
        }
      });
    }, false);
    ObjectDefineProperty(globalThis.queueMicrotask, "name", { __proto__: null, value: "queueMicrotask" });
    ObjectDefineProperty(globalThis, SymbolToStringTag, {
      __proto__: null,
      value: "global",
      configurable: true,
    });
    // There is no Temporal.
    ReflectDeleteProperty(DatePrototype, "toTemporalInstant");
    // Ops that return promises are called through these two.
    lock(FunctionPrototype, "call");
    lock(FunctionPrototype, "apply");
    // Enough for the script's frames besides those that are omitted from a stack.
    Error.stackTraceLimit = 30;
  };

  // Only the functions of tools can be enumerated: `Object.keys(globalThis)` is the list of them.
  function give(name, value, enumerable) {
    ObjectDefineProperty(globalThis, name, {
      __proto__: null,
      value,
      writable: true,
      enumerable,
      configurable: true,
    });
  }

  function lock(object, key) {
    const descriptor = ObjectGetOwnPropertyDescriptor(object, key);
    ObjectDefineProperty(object, key, {
      __proto__: null,
      value: descriptor.value,
      writable: false,
      enumerable: false,
      configurable: false,
    });
  }

  shared.prepare = (functions, depth, messageChars, args, stdin) => {
    shared.setInput(args, stdin);
    shared.limits.depth = depth;
    shared.limits.messageChars = messageChars;
    for (let i = 0; i < functions.length; i++) {
      give(functions[i], shared.makeStub(functions[i]), true);
    }
  };

  // Calls the script's function and reports its end.
  shared.run = (script) => {
    if (typeof script !== "function") {
      shared.fail(new Error("the code of the script is not a function"));
      return;
    }
    let result;
    try {
      result = ReflectApply(script, undefined, []);
    } catch (error) {
      shared.fail(error);
      return;
    }
    try {
      // The original `then`: a script's changes to promises have no effect here, except for
      // `constructor` and `Symbol.species`, which the language reads.
      const promise = core.isPromise(result) ? result : PromiseResolve(result);
      PromisePrototypeThen(promise, returned, shared.fail);
    } catch (error) {
      shared.fail(error);
    }
  };

  function returned(value) {
    if (ended) return;
    // An unhandled rejection is the run's error, even if the event loop has not reported it yet.
    const left = op_callgate_rejection();
    if (left.length > 0) {
      shared.fail(left[0]);
      return;
    }
    let kind = SHOWN;
    let text;
    if (value === undefined) {
      kind = UNDEFINED;
      text = "";
    } else {
      try {
        text = shared.jsonOf(value, "value", shownPart);
        if (text !== undefined) kind = JSON_TEXT;
      } catch { /* JSON does not have the value; a cycle; a throwing getter: shown instead */ }
    }
    try {
      text ??= shared.inspect(value);
    } catch (error) {
      // The prototype of a value can be a proxy, whose handlers can throw.
      shared.fail(error);
      return;
    }
    if (ended) return; // by what a getter or toJSON of the value did
    // Not the end yet: calls that the script did not await may still fail.
    op_callgate_done(kind, text, "", "", 0, 0);
  }

  // The text in place of a part of the returned value that has no JSON form.
  function shownPart(part, message, isWhole) {
    if (isWhole) throw new Error(message);
    if (part === undefined) return null;
    if (part === null) return "Invalid Date";
    return core.isNativeError(part) ? shared.headline(part) : shared.inspect(part);
  }

  shared.fail = (error, line, column) => {
    if (ended) return;
    let told;
    try {
      told = describe(error);
    } catch {
      told = { __proto__: null, name: "", message: "a value that cannot be shown", stack: "" };
    }
    if (ended) return; // by what the error's getters did
    ended = true;
    op_callgate_done(
      THREW,
      told.message,
      told.name,
      told.stack,
      line ?? told.position?.[0] ?? 0,
      column ?? told.position?.[1] ?? 0,
    );
  };

  function describe(error) {
    if (!core.isNativeError(error)) {
      const message = shared.cut(shared.inspect(error, { chars: 4096 }), MESSAGE_CHARS);
      return { __proto__: null, name: "", message, stack: "", position: undefined };
    }
    const told = {
      __proto__: null,
      name: property(error, "name", "Error", NAME_CHARS),
      message: property(error, "message", "", MESSAGE_CHARS),
      stack: linesOf(error),
      position: shared.positionOf(error),
    };
    addCauses(error, told, [error]);
    told.stack = shared.cut(told.stack, STACK_CHARS);
    return told;
  }

  // The class and message of an error in one line, and its frames. A stack that the script has set
  // has no frames.
  function linesOf(error) {
    // V8 builds the frames when the stack is read.
    shared.stackOf(error);
    return oneLine(shared.cut(shared.headline(error), CAUSE_CHARS)) + (shared.framesOf(error) ?? "");
  }

  // Adds the causes of an error: its `cause`, and the errors of an AggregateError. An error from outside
  // of the script's functions gets the position of a cause.
  function addCauses(error, told, seen) {
    const add = (cause) => {
      if (seen.length > CAUSES || primordials.ArrayPrototypeIncludes(seen, cause)) return;
      push(seen, cause);
      if (core.isNativeError(cause)) {
        told.stack += `\nCaused by: ${linesOf(cause)}`;
        told.position ??= shared.positionOf(cause);
        addCauses(cause, told, seen);
      } else {
        told.stack += `\nCaused by: ${oneLine(shared.inspect(cause, { chars: CAUSE_CHARS }))}`;
      }
    };
    const cause = ObjectGetOwnPropertyDescriptor(error, "cause");
    if (cause !== undefined && "value" in cause && cause.value !== undefined) add(cause.value);
    const errors = ObjectGetOwnPropertyDescriptor(error, "errors");
    if (!ArrayIsArray(errors?.value) || op_callgate_proxy_target(errors.value).length > 0) return;
    for (let i = 0; i < CAUSES; i++) {
      const one = ObjectGetOwnPropertyDescriptor(errors.value, i);
      if (one !== undefined && "value" in one) add(one.value);
    }
  }

  function property(error, key, otherwise, chars) {
    try {
      const value = error[key];
      return value === undefined ? otherwise : shared.cut(shared.textOf(value, otherwise), chars);
    } catch {
      return otherwise;
    }
  }

  // The stack of a real error, even if the script has changed the property.
  shared.stackOf = (error) => {
    try {
      const stack = error.stack;
      if (typeof stack === "string") return shared.cut(stack, STACK_CHARS);
    } catch { /* a hostile getter: the headline stands */ }
    return shared.cut(shared.headline(error), STACK_CHARS);
  };
})(globalThis);
