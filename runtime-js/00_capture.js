// What the other files share, and the stack traces that a script sees.
//
// `shared` lives on an object that `99_start.js` takes off the global before a script runs.
"use strict";

((globalThis) => {
  const { primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayPrototypeJoin,
    ArrayPrototypePush,
    SafeWeakMap,
    String,
    StringPrototypeSlice,
    StringPrototypeStartsWith,
    WeakMapPrototypeGet,
    WeakMapPrototypeSet,
  } = primordials;

  const shared = { __proto__: null };
  internals.callgate = shared;

  // Where an error was made: [line, column] of its first frame in the script.
  const positions = new SafeWeakMap();

  // Limits of the run; `start` in 99_start.js sets them.
  shared.limits = { __proto__: null, depth: 4, messageChars: 65536 };

  // A value as a string, whatever its getters and methods do.
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

  // The first line of a stack: name and message, as V8 writes it.
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

  // The frames of a stack: those of the script and of the language, without ours. The script is
  // compiled with a line offset, so its line 1 is the author's first line, and lines before it are
  // the wrapper's.
  const framesOf = (sites) => {
    const lines = [];
    let position;
    for (let i = 0; i < sites.length; i++) {
      const site = sites[i];
      const file = site.getFileName();
      const line = site.getLineNumber();
      if (typeof file === "string") {
        if (StringPrototypeStartsWith(file, "ext:")) continue;
        if (!(line >= 1)) {
          // V8 gives an undefined name the place of its statement, and where the script is one
          // expression, the wrapper begins that statement.
          position ??= [1, 1];
          ArrayPrototypePush(lines, `\n    at ${file}:1:1`);
          continue;
        }
        position ??= [line, site.getColumnNumber()];
      }
      ArrayPrototypePush(lines, `\n    at ${site.toString()}`);
    }
    return { text: ArrayPrototypeJoin(lines, ""), position };
  };

  // Called by V8 when `error.stack` is first read. `Error.prepareStackTrace` has no effect.
  shared.prepareStackTrace = (error, sites) => {
    const frames = framesOf(sites);
    if (frames.position !== undefined) WeakMapPrototypeSet(positions, error, frames.position);
    return shared.headline(error) + frames.text;
  };

  shared.positionOf = (error) => WeakMapPrototypeGet(positions, error);

  shared.setPosition = (error, position) => {
    if (position !== undefined) WeakMapPrototypeSet(positions, error, position);
  };
})(globalThis);
