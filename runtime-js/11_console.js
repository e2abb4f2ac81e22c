// `console`. Every message is cut to the maximum length in the isolate; the worker then keeps the head
// and the tail of the whole output.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayIsArray,
    ArrayPrototypeIncludes,
    ArrayPrototypeJoin,
    ArrayPrototypeSlice,
    JSONStringify,
    MapPrototypeEntries,
    MapIteratorPrototypeNext,
    MapPrototypeGetSize,
    MathMax,
    MathMin,
    MathTrunc,
    Number,
    NumberParseFloat,
    NumberParseInt,
    NumberPrototypeToFixed,
    ObjectDefineProperty,
    ObjectGetOwnPropertyDescriptor,
    ObjectKeys,
    SafeMap,
    SafeSet,
    SetPrototypeGetSize,
    SetPrototypeValues,
    SetIteratorPrototypeNext,
    StringPrototypeCharCodeAt,
    StringPrototypePadEnd,
    StringPrototypeRepeat,
    StringPrototypeReplaceAll,
    StringPrototypeSlice,
    SymbolPrototypeToString,
    SymbolToStringTag,
  } = primordials;
  const { op_callgate_print, op_callgate_now } = core.ops;
  const shared = internals.callgate;
  const { push } = shared;
  const { inspect } = shared;

  const TABLE_ROWS = 200;

  const counts = new SafeMap();
  const timers = new SafeMap();
  let groupIndent = "";

  // Marks of emitted blocks before the first message: there are none if no message follows.
  let marks = "";
  let hasPrinted = false;

  // Prints a line such as "[image 1]" among the messages, where a block was emitted.
  shared.printMark = (mark) => {
    if (hasPrinted) op_callgate_print(mark, 0, true);
    else marks += marks === "" ? mark : `\n${mark}`;
  };

  // Prints to standard error if `isError`, as Node does for errors, warnings and traces.
  function emit(text, isError = false) {
    hasPrinted = true;
    if (marks !== "") {
      op_callgate_print(marks, 0, true);
      marks = "";
    }
    const limit = shared.limits.messageChars;
    let missing = 0;
    if (text.length > limit) {
      const whole = text;
      text = cutMiddle(whole, limit);
      missing = core.byteLength(whole) - core.byteLength(text);
    }
    if (groupIndent !== "") {
      text = groupIndent + StringPrototypeReplaceAll(text, "\n", `\n${groupIndent}`);
    }
    op_callgate_print(text, missing, isError);
  }

  // The message's own head and tail.
  function cutMiddle(text, limit) {
    const half = MathTrunc(limit / 2);
    const end = border(text, half);
    const start = border(text, text.length - half);
    const head = StringPrototypeSlice(text, 0, end);
    const tail = StringPrototypeSlice(text, start);
    return `${head}\u2026 ${start - end} characters cut \u2026${tail}`;
  }

  // The index, or the one before it if it is within a character.
  function border(text, at) {
    const before = StringPrototypeCharCodeAt(text, at - 1);
    const after = StringPrototypeCharCodeAt(text, at);
    return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000 ? at - 1 : at;
  }

  // Formats like printf if the first argument is a string with a `%`; otherwise joins all arguments.
  function format(args) {
    if (args.length === 1 && typeof args[0] === "string") return args[0];
    const parts = [];
    let left = shared.limits.messageChars;
    let next = 0;
    if (typeof args[0] === "string" && args.length > 1) {
      const made = substitute(args);
      push(parts, made.text);
      left -= made.text.length;
      next = made.used;
    }
    for (let i = next; i < args.length; i++) {
      if (left <= 0) {
        push(parts, `\u2026 ${args.length - i} more arguments`);
        break;
      }
      const text = typeof args[i] === "string" ? args[i] : inspect(args[i], { chars: left });
      left -= text.length;
      push(parts, text);
    }
    return ArrayPrototypeJoin(parts, " ");
  }
  shared.format = format;

  function substitute(args) {
    const template = args[0];
    let text = "";
    let from = 0;
    let used = 1;
    for (let i = 0; i < template.length - 1; i++) {
      if (template[i] !== "%") continue;
      const letter = template[i + 1];
      if (letter === "%") {
        text += StringPrototypeSlice(template, from, i) + "%";
        from = i + 2;
        i++;
        continue;
      }
      if (used >= args.length) continue;
      const shown = substituted(letter, args[used]);
      if (shown === undefined) continue;
      text += StringPrototypeSlice(template, from, i) + shown;
      from = i + 2;
      i++;
      used++;
    }
    return { text: text + StringPrototypeSlice(template, from), used };
  }

  function substituted(letter, value) {
    switch (letter) {
      case "s":
        if (typeof value === "string") return value;
        if (typeof value === "object" || typeof value === "function") {
          return inspect(value, { depth: 0 });
        }
        return inspect(value);
      case "d":
        if (typeof value === "bigint") return inspect(value);
        return typeof value === "symbol" || typeof value === "object"
          ? "NaN"
          : inspect(Number(value));
      case "i":
        if (typeof value === "bigint") return inspect(value);
        return typeof value === "symbol" || typeof value === "object"
          ? "NaN"
          : inspect(NumberParseInt(value));
      case "f":
        return typeof value === "symbol" ? "NaN" : inspect(NumberParseFloat(value));
      case "j":
        try {
          return `${JSONStringify(value)}`;
        } catch {
          return "[Circular]";
        }
      case "o":
      case "O":
        return inspect(value);
      case "c":
        return "";
    }
    return undefined;
  }

  function labelOf(label) {
    if (label === undefined) return "default";
    if (typeof label === "symbol") return SymbolPrototypeToString(label);
    return shared.textOf(label, "default");
  }

  function elapsed(label) {
    const ms = op_callgate_now() - timers.get(label);
    if (ms >= 1000) return `${NumberPrototypeToFixed(ms / 1000, 3)}s`;
    return `${NumberPrototypeToFixed(ms, 3)}ms`;
  }

  function descriptorValue(object, key) {
    return ObjectGetOwnPropertyDescriptor(object, key)?.value;
  }

  // Rows of [index, value] pairs of the argument of `console.table`.
  function rowsOf(data) {
    const rows = [];
    if (core.isMap(data)) {
      const entries = MapPrototypeEntries(data);
      for (let i = 0; i < TABLE_ROWS; i++) {
        const step = MapIteratorPrototypeNext(entries);
        if (step.done) break;
        push(rows, [`${i}`, { Key: step.value[0], Values: step.value[1] }]);
      }
      return { rows, index: "(iteration index)", size: MapPrototypeGetSize(data) };
    }
    if (core.isSet(data)) {
      const values = SetPrototypeValues(data);
      for (let i = 0; i < TABLE_ROWS; i++) {
        const step = SetIteratorPrototypeNext(values);
        if (step.done) break;
        push(rows, [`${i}`, step.value]);
      }
      return { rows, index: "(iteration index)", size: SetPrototypeGetSize(data) };
    }
    const keys = ArrayIsArray(data) && data.length > TABLE_ROWS
      ? ObjectKeys(ArrayPrototypeSlice(data, 0, TABLE_ROWS))
      : ObjectKeys(data);
    for (let i = 0; i < MathMin(keys.length, TABLE_ROWS); i++) {
      push(rows, [keys[i], descriptorValue(data, keys[i])]);
    }
    return { rows, index: "(index)", size: ArrayIsArray(data) ? data.length : keys.length };
  }

  function table(data, only) {
    const { rows, index, size } = rowsOf(data);
    const names = [];
    const seen = new SafeSet();
    let plain = false;
    for (let r = 0; r < rows.length; r++) {
      const value = rows[r][1];
      if (value === null || typeof value !== "object") {
        plain = true;
        continue;
      }
      const keys = ObjectKeys(value);
      for (let k = 0; k < MathMin(keys.length, 100); k++) {
        if (seen.has(keys[k])) continue;
        seen.add(keys[k]);
        push(names, keys[k]);
      }
    }
    const shown = ArrayIsArray(only) ? only : names;
    const heads = [index];
    for (let i = 0; i < shown.length; i++) push(heads, shared.textOf(shown[i], ""));
    if (plain) push(heads, "Values");
    const lines = [];
    for (let r = 0; r < rows.length; r++) {
      const value = rows[r][1];
      const isObject = value !== null && typeof value === "object";
      const line = [rows[r][0]];
      for (let i = 0; i < shown.length; i++) {
        const has = isObject && ArrayPrototypeIncludes(ObjectKeys(value), shown[i]);
        push(
          line,
          has ? inspect(descriptorValue(value, shown[i]), { depth: 0, chars: 200 }) : "",
        );
      }
      if (plain) push(line, isObject ? "" : inspect(value, { chars: 200 }));
      push(lines, line);
    }
    const more = size > TABLE_ROWS ? `\n... ${size - TABLE_ROWS} more rows` : "";
    return drawTable(heads, lines) + more;
  }

  function drawTable(heads, lines) {
    const widths = [];
    for (let c = 0; c < heads.length; c++) {
      let width = heads[c].length;
      for (let r = 0; r < lines.length; r++) width = MathMax(width, lines[r][c].length);
      push(widths, width + 2);
    }
    const rule = (left, middle, right) => {
      const parts = [];
      for (let c = 0; c < widths.length; c++) {
        push(parts, StringPrototypeRepeat("\u2500", widths[c]));
      }
      return left + ArrayPrototypeJoin(parts, middle) + right;
    };
    const row = (cells) => {
      const parts = [];
      for (let c = 0; c < cells.length; c++) {
        push(parts, ` ${StringPrototypePadEnd(cells[c], widths[c] - 1)}`);
      }
      return `\u2502${ArrayPrototypeJoin(parts, "\u2502")}\u2502`;
    };
    const out = [rule("\u250c", "\u252c", "\u2510"), row(heads), rule("\u251c", "\u253c", "\u2524")];
    for (let r = 0; r < lines.length; r++) push(out, row(lines[r]));
    push(out, rule("\u2514", "\u2534", "\u2518"));
    return ArrayPrototypeJoin(out, "\n");
  }

  const methods = {
    __proto__: null,
    debug: (...args) => emit(format(args)),
    log: (...args) => emit(format(args)),
    info: (...args) => emit(format(args)),
    warn: (...args) => emit(format(args), true),
    error: (...args) => emit(format(args), true),
    dir: (value, options) => {
      const depth = options?.depth;
      emit(inspect(value, {
        depth: depth === null || depth === Infinity ? 64 : typeof depth === "number" ? MathMin(depth, 64) : undefined,
      }));
    },
    dirxml: (...args) => emit(format(args)),
    table: (data, only) =>
      data !== null && typeof data === "object"
        ? emit(table(data, only))
        : emit(format([data])),
    assert: (condition, ...args) => {
      if (condition) return;
      if (args.length > 0 && typeof args[0] === "string") {
        args[0] = `Assertion failed: ${args[0]}`;
        emit(format(args), true);
      } else emit(args.length > 0 ? `Assertion failed ${format(args)}` : "Assertion failed", true);
    },
    count: (label) => {
      label = labelOf(label);
      const count = (counts.get(label) ?? 0) + 1;
      counts.set(label, count);
      emit(`${label}: ${count}`);
    },
    countReset: (label) => {
      label = labelOf(label);
      if (counts.has(label)) counts.delete(label);
      else emit(`Count for '${label}' does not exist`, true);
    },
    time: (label) => {
      label = labelOf(label);
      if (timers.has(label)) emit(`Label '${label}' already exists for console.time()`, true);
      else timers.set(label, op_callgate_now());
    },
    timeLog: (label, ...args) => {
      label = labelOf(label);
      if (!timers.has(label)) emit(`No such label '${label}' for console.timeLog()`, true);
      else emit(`${label}: ${elapsed(label)}${args.length > 0 ? ` ${format(args)}` : ""}`);
    },
    timeEnd: (label) => {
      label = labelOf(label);
      if (!timers.has(label)) emit(`No such label '${label}' for console.timeEnd()`, true);
      else {
        emit(`${label}: ${elapsed(label)}`);
        timers.delete(label);
      }
    },
    group: (...args) => {
      if (args.length > 0) emit(format(args));
      if (groupIndent.length < 64) groupIndent += "  ";
    },
    groupEnd: () => {
      groupIndent = StringPrototypeSlice(groupIndent, 2);
    },
    trace: function trace(...args) {
      const holder = { __proto__: null, name: "Trace", message: args.length > 0 ? format(args) : "" };
      primordials.ErrorCaptureStackTrace(holder, trace);
      // There is no stack if `Error.stackTraceLimit` is not a number.
      emit(holder.stack ?? shared.headline(holder), true);
    },
    clear: () => {},
  };
  methods.groupCollapsed = methods.group;

  const console = {};
  const names = ObjectKeys(methods);
  for (let i = 0; i < names.length; i++) {
    const method = methods[names[i]];
    ObjectDefineProperty(method, "name", { __proto__: null, value: names[i], configurable: true });
    console[names[i]] = method;
  }
  ObjectDefineProperty(console, SymbolToStringTag, {
    __proto__: null,
    value: "console",
    configurable: true,
  });
  shared.console = console;
})(globalThis);
