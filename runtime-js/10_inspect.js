// Values as text in the format of Node.js' console, within a budget.
//
// Reading a value never calls a getter or a method of the script, and stops at the maximum length of a
// message: a value can be far larger than the text.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayBufferPrototypeGetByteLength,
    ArrayIsArray,
    ArrayPrototypeIncludes,
    ArrayPrototypeJoin,
    ArrayPrototypePop,
    BigIntPrototypeToString,
    BigIntPrototypeValueOf,
    BooleanPrototypeValueOf,
    DatePrototypeGetTime,
    DatePrototypeToISOString,
    ErrorPrototype,
    FunctionPrototypeToString,
    MapPrototypeEntries,
    MapPrototypeGetSize,
    MapIteratorPrototypeNext,
    MathMax,
    MathMin,
    NumberIsNaN,
    NumberPrototypeValueOf,
    ObjectGetOwnPropertyDescriptor,
    ObjectGetOwnPropertySymbols,
    ObjectGetPrototypeOf,
    ObjectIs,
    ObjectKeys,
    ObjectPrototypeHasOwnProperty,
    ObjectPrototypeIsPrototypeOf,
    ObjectPrototypePropertyIsEnumerable,
    RegExpPrototypeToString,
    SafeMap,
    SafeRegExp,
    RegExpPrototypeTest,
    SetPrototypeGetSize,
    SetPrototypeValues,
    SetIteratorPrototypeNext,
    StringPrototypeIncludes,
    StringPrototypePadStart,
    StringPrototypeRepeat,
    StringPrototypeReplace,
    StringPrototypeReplaceAll,
    StringPrototypeSlice,
    StringPrototypeStartsWith,
    StringPrototypeValueOf,
    SymbolPrototypeToString,
    SymbolPrototypeValueOf,
    SymbolToStringTag,
    TypedArrayPrototypeGetLength,
    TypedArrayPrototypeGetSymbolToStringTag,
  } = primordials;
  const { op_callgate_promise_details, op_callgate_proxy_target } = core.ops;
  const shared = internals.callgate;
  const { push } = shared;

  const LINE_CHARS = 120; // a value goes on one line if it fits in this
  const NUMBERS = 100; // of a typed array; the rest is counted
  const STRING_CHARS = 10000; // of a string inside a value
  const IDENTIFIER = new SafeRegExp("^[a-zA-Z_$][a-zA-Z_$0-9]*$");
  const CONTROL = new SafeRegExp("[\\x00-\\x1f\\x7f-\\x9f\\\\]", "g");
  const BASE64 = new SafeRegExp("^[A-Za-z0-9+/_=\\r\\n-]+$");
  const BASE64_CHARS = 200; // of a picture, sound or blob that is shown as text

  // Functions that show the runtime's own classes. For a value of its class, each returns a text,
  // or a name and an object to show; undefined for all other values.
  shared.shows = [];

  // `value` as text; `depth` levels of it, at most about `chars` characters.
  shared.inspect = (value, options) => {
    // Without a prototype, on which a script could have put options.
    const { depth, chars } = { __proto__: null, ...options };
    const ctx = {
      __proto__: null,
      depth: depth ?? shared.limits.depth,
      left: chars ?? shared.limits.messageChars,
      parents: [],
      circular: undefined,
      indent: 0,
      deepest: 0,
    };
    return formatValue(ctx, value, 0);
  };

  // Subtracts a text from the budget. Called once for every part of the result.
  function spend(ctx, text) {
    ctx.left -= text.length;
    return text;
  }

  function formatValue(ctx, value, level) {
    if (value === null) return spend(ctx, "null");
    switch (typeof value) {
      case "string":
        return formatString(ctx, value);
      case "number":
        return spend(ctx, ObjectIs(value, -0) ? "-0" : `${value}`);
      case "bigint":
        return spend(ctx, `${cutDigits(BigIntPrototypeToString(value))}n`);
      case "boolean":
      case "undefined":
        return spend(ctx, `${value}`);
      case "symbol":
        return spend(ctx, SymbolPrototypeToString(value));
    }
    const proxy = op_callgate_proxy_target(value);
    if (proxy.length > 0) {
      if (proxy[0] === null) return spend(ctx, "<Revoked Proxy>");
      return formatValue(ctx, proxy[0], level);
    }
    if (ArrayPrototypeIncludes(ctx.parents, value)) {
      ctx.circular ??= new SafeMap();
      let index = ctx.circular.get(value);
      if (index === undefined) {
        index = ctx.circular.size + 1;
        ctx.circular.set(value, index);
      }
      return spend(ctx, `[Circular *${index}]`);
    }
    return formatObject(ctx, value, level);
  }

  function cutDigits(text) {
    return shared.cut(text, STRING_CHARS);
  }

  function formatString(ctx, text) {
    const shown = StringPrototypeSlice(text, 0, MathMin(STRING_CHARS, MathMax(ctx.left, 16)));
    const rest = text.length - shown.length;
    let result = quote(shown);
    if (rest > 0) result += `... ${rest} more character${rest > 1 ? "s" : ""}`;
    return spend(ctx, result);
  }

  function quote(text) {
    const mark = !StringPrototypeIncludes(text, "'")
      ? "'"
      : !StringPrototypeIncludes(text, '"')
      ? '"'
      : !StringPrototypeIncludes(text, "`")
      ? "`"
      : "'";
    let escaped = StringPrototypeReplace(text, CONTROL, escapeControl);
    if (mark === "'") escaped = StringPrototypeReplaceAll(escaped, "'", "\\'");
    return mark + escaped + mark;
  }
  shared.quote = quote;

  function escapeControl(char) {
    switch (char) {
      case "\n": return "\\n";
      case "\t": return "\\t";
      case "\r": return "\\r";
      case "\b": return "\\b";
      case "\f": return "\\f";
      case "\v": return "\\v";
      case "\\": return "\\\\";
    }
    const hex = primordials.NumberPrototypeToString(primordials.StringPrototypeCharCodeAt(char, 0), 16);
    return `\\x${StringPrototypePadStart(primordials.StringPrototypeToUpperCase(hex), 2, "0")}`;
  }

  // Name of the constructor, or null for an object without a prototype.
  function constructorName(value) {
    let object = value;
    for (let i = 0; i < 32 && object !== null; i++) {
      const descriptor = ObjectGetOwnPropertyDescriptor(object, "constructor");
      if (descriptor !== undefined && typeof descriptor.value === "function") {
        const name = ObjectGetOwnPropertyDescriptor(descriptor.value, "name");
        if (typeof name?.value === "string" && name.value !== "") {
          return shared.cut(name.value, 200);
        }
      }
      object = ObjectGetPrototypeOf(object);
    }
    return null;
  }

  function ownTag(value) {
    let object = value;
    for (let i = 0; i < 32 && object !== null; i++) {
      const descriptor = ObjectGetOwnPropertyDescriptor(object, SymbolToStringTag);
      if (descriptor !== undefined) {
        return typeof descriptor.value === "string" ? shared.cut(descriptor.value, 200) : "";
      }
      object = ObjectGetPrototypeOf(object);
    }
    return "";
  }

  shared.className = (value) => ownTag(value) || (constructorName(value) ?? "Object");
  shared.isIdentifier = (text) => RegExpPrototypeTest(IDENTIFIER, text);

  function prefixOf(value, fallback, size) {
    const name = constructorName(value);
    const count = size === undefined ? "" : `(${size})`;
    if (name === null) return `[${fallback}${count}: null prototype] `;
    const tag = ownTag(value);
    const shownTag = tag !== "" && tag !== name ? ` [${tag}]` : "";
    return `${name}${count}${shownTag} `;
  }

  function formatObject(ctx, value, level) {
    for (let i = 0; i < shared.shows.length; i++) {
      const shown = shared.shows[i](value);
      if (typeof shown === "string") return spend(ctx, shown);
      if (shown !== undefined) return formatEntries(ctx, value, level, `${shown.name} `, shown.fields);
    }
    if (ArrayIsArray(value)) {
      const name = constructorName(value);
      const prefix = name === "Array" ? "" : prefixOf(value, "Array", value.length);
      return formatBraced(ctx, value, level, prefix, "[", "]", arrayEntries, true);
    }
    if (core.isSet(value)) {
      const size = SetPrototypeGetSize(value);
      return formatBraced(ctx, value, level, prefixOf(value, "Set", size), "{", "}", setEntries);
    }
    if (core.isMap(value)) {
      const size = MapPrototypeGetSize(value);
      return formatBraced(ctx, value, level, prefixOf(value, "Map", size), "{", "}", mapEntries);
    }
    if (core.isTypedArray(value)) {
      const tag = TypedArrayPrototypeGetSymbolToStringTag(value);
      const prefix = `${tag}(${TypedArrayPrototypeGetLength(value)}) `;
      return formatBraced(ctx, value, level, prefix, "[", "]", typedArrayEntries, true);
    }
    if (typeof value === "function") return formatFunction(ctx, value, level);
    if (core.isArgumentsObject(value)) {
      return formatBraced(ctx, value, level, "[Arguments] ", "[", "]", arrayEntries, true);
    }
    if (core.isRegExp(value)) return formatBase(ctx, value, level, RegExpPrototypeToString(value));
    if (core.isDate(value)) {
      const text = NumberIsNaN(DatePrototypeGetTime(value))
        ? "Invalid Date"
        : DatePrototypeToISOString(value);
      return formatBase(ctx, value, level, text);
    }
    if (core.isNativeError(value) || ObjectPrototypeIsPrototypeOf(ErrorPrototype, value)) {
      return formatError(ctx, value, level);
    }
    if (core.isAnyArrayBuffer(value)) {
      const fields = { byteLength: ArrayBufferPrototypeGetByteLength(value) };
      return formatEntries(ctx, value, level, "ArrayBuffer ", fields);
    }
    if (core.isPromise(value)) {
      return formatBraced(ctx, value, level, prefixOf(value, "Promise"), "{", "}", promiseEntries);
    }
    if (core.isWeakSet(value)) return formatUnknown(ctx, "WeakSet");
    if (core.isWeakMap(value)) return formatUnknown(ctx, "WeakMap");
    if (core.isBoxedPrimitive(value)) return formatBoxed(ctx, value, level);
    const name = constructorName(value);
    const tag = ownTag(value);
    const prefix = name === "Object" && tag === "" ? "" : prefixOf(value, "Object");
    return formatBraced(ctx, value, level, prefix, "{", "}", () => []);
  }

  function formatUnknown(ctx, name) {
    return spend(ctx, `${name} { <items unknown> }`);
  }

  function formatBoxed(ctx, value, level) {
    let type;
    let inner;
    if (core.isNumberObject(value)) {
      type = "Number";
      inner = NumberPrototypeValueOf(value);
    } else if (core.isStringObject(value)) {
      type = "String";
      inner = StringPrototypeValueOf(value);
      return spend(ctx, `[String: ${formatString(ctx, inner)}]`);
    } else if (core.isBooleanObject(value)) {
      type = "Boolean";
      inner = BooleanPrototypeValueOf(value);
    } else if (core.isBigIntObject(value)) {
      type = "BigInt";
      inner = BigIntPrototypeValueOf(value);
    } else {
      type = "Symbol";
      inner = SymbolPrototypeValueOf(value);
    }
    return formatBase(ctx, value, level, `[${type}: ${formatValue(ctx, inner, level)}]`);
  }

  function formatFunction(ctx, value, level) {
    const name = ObjectGetOwnPropertyDescriptor(value, "name")?.value;
    const shown = typeof name === "string" && name !== "" ? shared.cut(name, 200) : undefined;
    const source = FunctionPrototypeToString(value);
    if (StringPrototypeStartsWith(source, "class") && source[source.length - 1] === "}") {
      let base = `[class ${shown ?? "(anonymous)"}`;
      const parent = ObjectGetPrototypeOf(value);
      const parentName = typeof parent === "function"
        ? ObjectGetOwnPropertyDescriptor(parent, "name")?.value
        : undefined;
      if (typeof parentName === "string" && parentName !== "") {
        base += ` extends ${shared.cut(parentName, 200)}`;
      }
      return formatBase(ctx, value, level, `${base}]`);
    }
    const type = core.isGeneratorFunction(value)
      ? core.isAsyncFunction(value) ? "AsyncGeneratorFunction" : "GeneratorFunction"
      : core.isAsyncFunction(value)
      ? "AsyncFunction"
      : "Function";
    return formatBase(ctx, value, level, `[${type}${shown === undefined ? " (anonymous)" : `: ${shown}`}]`);
  }

  // A text in place of the object, followed by its own properties.
  function formatBase(ctx, value, level, base) {
    const keys = ownKeys(value);
    if (keys.length === 0 || level > ctx.depth) return spend(ctx, base);
    return formatBraced(ctx, value, level, "", "{", "}", () => [], false, spend(ctx, base));
  }

  function formatError(ctx, value, level) {
    let text;
    const stack = ObjectGetOwnPropertyDescriptor(value, "stack");
    // `stack` of a real error is V8's own accessor or data; other accessors are the script's and are
    // not called.
    if (core.isNativeError(value)) text = shared.stackOf(value);
    else if (typeof stack?.value === "string") text = stack.value;
    if (typeof text !== "string" || text === "") text = `[${shared.headline(value)}]`;
    text = shared.cut(text, MathMax(MathMin(STRING_CHARS, ctx.left), 64));
    if (!StringPrototypeIncludes(text, "\n    at ") && text[0] !== "[") text = `[${text}]`;
    const pad = StringPrototypeRepeat(" ", ctx.indent);
    if (ctx.indent > 0) text = StringPrototypeReplaceAll(text, "\n", `\n${pad}`);
    const extra = [];
    const cause = ObjectGetOwnPropertyDescriptor(value, "cause");
    if (cause !== undefined && "value" in cause) push(extra, ["[cause]", cause.value]);
    const errors = ObjectGetOwnPropertyDescriptor(value, "errors");
    if (ArrayIsArray(errors?.value)) push(extra, ["[errors]", errors.value]);
    const hidden = ["stack", "message", "cause", "errors", "name"];
    // A sentence that the message has already, such as the reason of a denial.
    const isRepeated = (key) => {
      const field = ObjectGetOwnPropertyDescriptor(value, key)?.value;
      return typeof field === "string" && field.length >= 20 && StringPrototypeIncludes(text, field);
    };
    const keys = [];
    const all = ownKeys(value);
    for (let i = 0; i < all.length; i++) {
      if (!ArrayPrototypeIncludes(hidden, all[i]) && !isRepeated(all[i])) push(keys, all[i]);
    }
    spend(ctx, text);
    if (keys.length === 0 && extra.length === 0) return text;
    if (level > ctx.depth) return text;
    const entries = () => {
      const out = [];
      for (let i = 0; i < extra.length; i++) {
        push(out, `${extra[i][0]}: ${nested(ctx, extra[i][1], level)}`);
      }
      return out;
    };
    return formatBraced(ctx, value, level, "", "{", "}", entries, false, text, keys);
  }

  function formatEntries(ctx, value, level, prefix, fields) {
    const entries = () => {
      const out = [];
      const keys = ObjectKeys(fields);
      for (let i = 0; i < keys.length; i++) {
        push(out, `${keys[i]}: ${nested(ctx, fields[keys[i]], level)}`);
      }
      return out;
    };
    return formatBraced(ctx, value, level, prefix, "{", "}", entries, false, "", []);
  }

  // The common shape: prefix, bracket, entries, own properties, bracket.
  function formatBraced(ctx, value, level, prefix, open, close, entriesOf, list = false, base = "", givenKeys) {
    if (level > ctx.depth) {
      const name = constructorName(value);
      if (base !== "") return base;
      return spend(ctx, `[${name ?? `${list ? "Array" : "Object"}: null prototype`}]`);
    }
    push(ctx.parents, value);
    ctx.deepest = level;
    let output;
    try {
      output = entriesOf(ctx, value, level);
      const keys = givenKeys ?? ownKeys(value, list);
      for (let i = 0; i < keys.length; i++) {
        if (ctx.left <= 0) {
          push(output, `... ${keys.length - i} more properties`);
          break;
        }
        push(output, formatProperty(ctx, value, keys[i], level));
      }
    } finally {
      ArrayPrototypePop(ctx.parents);
    }
    if (ctx.circular !== undefined) {
      const index = ctx.circular.get(value);
      if (index !== undefined) {
        const reference = `<ref *${index}> `;
        if (base === "") prefix = reference + prefix;
        else base = reference + base;
      }
    }
    if (output.length === 0) {
      if (base !== "") return base;
      return spend(ctx, `${prefix}${open}${close}`);
    }
    spend(ctx, prefix);
    const inRows = list || core.isSet(value) || core.isMap(value);
    return layOut(ctx, output, base, prefix + open, close, level, inRows);
  }

  // One line if it is short and shallow; otherwise one entry per line, or several of a long list.
  function layOut(ctx, output, base, open, close, level, inRows) {
    if (inRows && output.length > 6) output = rows(ctx, output);
    const lead = base === "" ? "" : `${base} `;
    if (ctx.deepest - level < 3) {
      let total = output.length + output.length + ctx.indent + open.length + base.length + 10;
      let simple = !StringPrototypeIncludes(base, "\n");
      for (let i = 0; simple && i < output.length; i++) {
        total += output[i].length;
        simple = total <= LINE_CHARS && !StringPrototypeIncludes(output[i], "\n");
      }
      if (simple) return `${lead}${open} ${ArrayPrototypeJoin(output, ", ")} ${close}`;
    }
    const line = `\n${StringPrototypeRepeat(" ", ctx.indent)}`;
    return `${lead}${open}${line}  ${ArrayPrototypeJoin(output, `,${line}  `)}${line}${close}`;
  }

  // Entries in columns that fill a line.
  function rows(ctx, output) {
    const room = LINE_CHARS - ctx.indent - 3; // besides the indentation and the comma
    const filled = [];
    let row = "";
    for (let i = 0; i < output.length; i++) {
      if (StringPrototypeIncludes(output[i], "\n")) return output;
      const longer = row === "" ? output[i] : `${row}, ${output[i]}`;
      if (row !== "" && longer.length > room) {
        push(filled, row);
        row = output[i];
      } else {
        row = longer;
      }
    }
    push(filled, row);
    return filled;
  }

  function nested(ctx, value, level) {
    ctx.indent += 2;
    try {
      return formatValue(ctx, value, level + 1);
    } finally {
      ctx.indent -= 2;
    }
  }

  // Enumerable own keys; for lists, without the indices.
  function ownKeys(value, list = false) {
    const keys = [];
    if (!(list && TypedArrayPrototypeGetSymbolToStringTag(value) !== undefined)) {
      const names = list ? nonIndexKeys(value) : ObjectKeys(value);
      for (let i = 0; i < names.length; i++) push(keys, names[i]);
    }
    const symbols = ObjectGetOwnPropertySymbols(value);
    for (let i = 0; i < symbols.length; i++) {
      if (ObjectPrototypePropertyIsEnumerable(value, symbols[i])) {
        push(keys, symbols[i]);
      }
    }
    return keys;
  }

  // Indices come first in the order of keys, so they are skipped from the front. An array with very
  // many entries is not searched for further properties.
  function nonIndexKeys(value) {
    if (value.length > 100000) return [];
    const names = ObjectKeys(value);
    let i = 0;
    while (i < names.length && names[i] === `${+names[i]}`) i++;
    const rest = [];
    for (; i < names.length; i++) push(rest, names[i]);
    return rest;
  }

  function formatProperty(ctx, value, key, level) {
    const descriptor = ObjectGetOwnPropertyDescriptor(value, key);
    let shown;
    if (descriptor === undefined) shown = "undefined";
    else if ("value" in descriptor) {
      shown = isBase64(value, key, descriptor.value)
        ? spend(ctx, `<${descriptor.value.length} bytes of base64>`)
        : nested(ctx, descriptor.value, level);
    } else if (descriptor.get !== undefined) {
      shown = descriptor.set !== undefined ? "[Getter/Setter]" : "[Getter]";
    } else shown = "[Setter]";
    return `${spend(ctx, keyText(key))}: ${shown}`;
  }

  // True for the long base64 text of a content block or a resource.
  function isBase64(object, key, text) {
    if ((key !== "data" && key !== "blob") || typeof text !== "string") return false;
    return text.length > BASE64_CHARS && ObjectPrototypeHasOwnProperty(object, "mimeType") &&
      RegExpPrototypeTest(BASE64, StringPrototypeSlice(text, 0, BASE64_CHARS));
  }

  function keyText(key) {
    if (typeof key === "symbol") return `[${SymbolPrototypeToString(key)}]`;
    if (key === "__proto__") return "['__proto__']";
    const shown = shared.cut(key, 1000);
    return RegExpPrototypeTest(IDENTIFIER, shown) ? shown : quote(shown);
  }

  function rest(output, left) {
    if (left > 0) push(output, `... ${left} more item${left > 1 ? "s" : ""}`);
    return output;
  }

  function arrayEntries(ctx, value, level) {
    const output = [];
    const length = value.length;
    let i = 0;
    while (i < length && ctx.left > 0) {
      if (ObjectPrototypeHasOwnProperty(value, i)) {
        const descriptor = ObjectGetOwnPropertyDescriptor(value, i);
        push(
          output,
          "value" in descriptor ? nested(ctx, descriptor.value, level) : spend(ctx, "[Getter]"),
        );
        i++;
        continue;
      }
      // Holes are counted up to a limit: an array can have four billion.
      let holes = 0;
      while (i < length && holes < 100000 && !ObjectPrototypeHasOwnProperty(value, i)) {
        holes++;
        i++;
      }
      if (holes === 100000) {
        const keys = ObjectKeys(value);
        let next = length;
        for (let k = 0; k < keys.length; k++) {
          const index = +keys[k];
          if (index >= i && index < length) {
            next = index;
            break;
          }
        }
        holes += next - i;
        i = next;
      }
      push(output, spend(ctx, `<${holes} empty item${holes > 1 ? "s" : ""}>`));
    }
    return rest(output, length - i);
  }

  function typedArrayEntries(ctx, value, level) {
    const output = [];
    const length = TypedArrayPrototypeGetLength(value);
    const shown = MathMin(length, NUMBERS);
    for (let i = 0; i < shown; i++) push(output, nested(ctx, value[i], level));
    return rest(output, length - shown);
  }

  function setEntries(ctx, value, level) {
    const output = [];
    const values = SetPrototypeValues(value);
    while (ctx.left > 0) {
      const step = SetIteratorPrototypeNext(values);
      if (step.done) break;
      push(output, nested(ctx, step.value, level));
    }
    return rest(output, SetPrototypeGetSize(value) - output.length);
  }

  function mapEntries(ctx, value, level) {
    const output = [];
    const entries = MapPrototypeEntries(value);
    while (ctx.left > 0) {
      const step = MapIteratorPrototypeNext(entries);
      if (step.done) break;
      const key = nested(ctx, step.value[0], level);
      push(output, `${key} => ${nested(ctx, step.value[1], level)}`);
    }
    return rest(output, MapPrototypeGetSize(value) - output.length);
  }

  function promiseEntries(ctx, value, level) {
    const details = op_callgate_promise_details(value);
    if (details[0] === 0) return [spend(ctx, "<pending>")];
    const inner = nested(ctx, details[1], level);
    return [details[0] === 2 ? `<rejected> ${inner}` : inner];
  }
})(globalThis);
