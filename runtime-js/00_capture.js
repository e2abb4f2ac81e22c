// The helpers that the other files share, and the stack traces that a script sees.
//
// `shared` lives on an object that `99_start.js` takes off the global before a script runs.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    MathFloor,
    ObjectDefineProperty,
    ObjectPrototypePropertyIsEnumerable,
    SafeWeakMap,
    String,
    StringPrototypeEndsWith,
    StringPrototypeIncludes,
    StringPrototypeReplaceAll,
    StringPrototypeSlice,
    StringPrototypeStartsWith,
    WeakMapPrototypeGet,
    WeakMapPrototypeSet,
  } = primordials;

  const { op_callgate_place } = core.ops;

  const shared = { __proto__: null };
  internals.callgate = shared;

  // The factor with which op_callgate_place packs a line and a column; src/ops.rs of the worker has
  // the same number.
  const COLUMNS = 1 << 20;

  // The place of an error: [line, column] of its first frame in the script.
  const positions = new SafeWeakMap();

  // The frames of an error, without its message, which can look like frames.
  const frames = new SafeWeakMap();

  // Limits of the run; `start` in 99_start.js sets them.
  shared.limits = { __proto__: null, depth: 8, messageChars: 65536 };

  // Adds to the end of a list. `push` of an array would call a setter that a script has put on an
  // index of `Array.prototype`.
  shared.push = (list, value) => {
    ObjectDefineProperty(list, list.length, {
      __proto__: null,
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  };

  // A value as a string; errors of its getters and methods are caught.
  shared.textOf = (value, otherwise) => {
    try {
      return typeof value === "symbol" ? otherwise : String(value);
    } catch {
      return otherwise;
    }
  };

  shared.cut = (text, chars) =>
    text.length <= chars
      ? text
      : `${StringPrototypeSlice(text, 0, chars)}\u2026 ${text.length - chars} more characters`;

  // A script's own text in one line, so that no part of it looks like a frame.
  shared.oneLine = (text) =>
    StringPrototypeReplaceAll(StringPrototypeReplaceAll(text, "\n", " "), "\r", " ");

  // The first line of a stack in V8's format: name and message.
  shared.headline = (error) => {
    let name = "Error";
    let message = "";
    try {
      const given = error.name;
      if (given !== undefined) name = shared.textOf(given, "Error");
    } catch { /* a hostile getter: the default name stands */ }
    try {
      const given = error.message;
      if (given !== undefined) message = shared.textOf(given, "");
    } catch { /* a hostile getter: no message */ }
    if (name === "") return message;
    return message === "" ? name : `${name}: ${message}`;
  };

  // The frames of the script, with the author's places. Frames of the language, of this runtime and of
  // generated code are omitted.
  const framesOf = (sites) => {
    // A string, not a list: a script can put a setter on the indices of every array.
    let text = "";
    let position;
    for (let i = 0; i < sites.length; i++) {
      const site = sites[i];
      const file = site.getFileName();
      if (typeof file !== "string" || StringPrototypeStartsWith(file, "ext:")) continue;
      const line = site.getLineNumber() ?? 0;
      const column = site.getColumnNumber() ?? 0;
      const place = op_callgate_place(line, column);
      if (place === 0) continue;
      const author = [MathFloor(place / COLUMNS), place % COLUMNS];
      position ??= author;
      const frame = isInferred(site.getFunctionName())
        ? `${site.isAsync() ? "async " : ""}${site.getScriptNameOrSourceURL()}:${line}:${column}`
        : site.toString();
      text += `\n    at ${moved(shared.oneLine(frame), line, column, author)}`;
    }
    return { text, position };
  };

  // True for the name that V8 makes up for a function without one, of words that stand near it: it has a
  // dot (`fs_move_file.source`), or is a tool's, whose own frames are not in the script.
  const isInferred = (name) =>
    typeof name === "string" &&
    (StringPrototypeIncludes(name, ".") || ObjectPrototypePropertyIsEnumerable(globalThis, name));

  // A frame in V8's format, `name (file:line:column)` or `file:line:column`, with a new place.
  const moved = (frame, line, column, author) => {
    const end = `:${line}:${column}`;
    const close = StringPrototypeEndsWith(frame, ")") ? ")" : "";
    const tail = end + close;
    const head = StringPrototypeEndsWith(frame, tail)
      ? StringPrototypeSlice(frame, 0, frame.length - tail.length)
      : frame;
    return `${head}:${author[0]}:${author[1]}${close}`;
  };

  // Called by V8 when `error.stack` is first read. `Error.prepareStackTrace` has no effect.
  shared.prepareStackTrace = (error, sites) => {
    const { text, position } = framesOf(sites);
    if (position !== undefined) WeakMapPrototypeSet(positions, error, position);
    WeakMapPrototypeSet(frames, error, text);
    return shared.headline(error) + text;
  };

  shared.positionOf = (error) => WeakMapPrototypeGet(positions, error);

  shared.framesOf = (error) => WeakMapPrototypeGet(frames, error);

  // Gives an error the place and the frames of a second error, whose stack has been read.
  shared.setPlace = (error, other) => {
    const position = shared.positionOf(other);
    if (position !== undefined) WeakMapPrototypeSet(positions, error, position);
    const text = shared.framesOf(other);
    if (text !== undefined) WeakMapPrototypeSet(frames, error, text);
  };
})(globalThis);
