// Converts JSON texts to values and back without silent loss: an integer that a number cannot hold is
// a BigInt in both directions.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayBufferIsView,
    ArrayIsArray,
    BigInt,
    BigIntPrototype,
    BigIntPrototypeToString,
    DatePrototypeGetTime,
    ErrorPrototype,
    JSONIsRawJSON,
    JSONParse,
    JSONRawJSON,
    JSONStringify,
    NumberIsFinite,
    NumberIsNaN,
    NumberIsSafeInteger,
    NumberPrototypeValueOf,
    ObjectDefineProperty,
    ObjectGetOwnPropertyDescriptor,
    ObjectGetPrototypeOf,
    ObjectHasOwn,
    ObjectKeys,
    ObjectPrototype,
    ObjectPrototypeIsPrototypeOf,
    RegExpPrototypeTest,
    SafeRegExp,
  } = primordials;
  const shared = internals.callgate;

  // 2 ** 53 has 16 digits.
  const LONG = new SafeRegExp("[0-9]{16}");
  const INTEGER = new SafeRegExp("^-?[0-9]+$");
  const PATH_CHARS = 200;

  // The value of a JSON text.
  shared.parseJson = (text) =>
    RegExpPrototypeTest(LONG, text) ? JSONParse(text, exact) : JSONParse(text);

  function exact(_key, value, context) {
    return typeof value === "number" && !NumberIsSafeInteger(value) &&
        ObjectHasOwn(context, "source") && RegExpPrototypeTest(INTEGER, context.source)
      ? BigInt(context.source)
      : value;
  }

  // `JSON.stringify` writes a BigInt with all its digits.
  ObjectDefineProperty(BigIntPrototype, "toJSON", {
    __proto__: null,
    value: {
      toJSON() {
        return JSONRawJSON(BigIntPrototypeToString(this));
      },
    }.toJSON,
    writable: true,
    enumerable: false,
    configurable: true,
  });

  // The JSON text of a value, which messages call `root`. A part without a JSON form is replaced by the
  // result of `lost`, which gets the part, a message, and true if the part is the whole value.
  shared.jsonOf = (value, root, lost) => {
    // The objects around the current value, the innermost first.
    let inside;
    return JSONStringify(value, function (key, value) {
      while (inside !== undefined && inside.object !== this) inside = inside.around;
      if (typeof value === "bigint") return JSONRawJSON(BigIntPrototypeToString(value));
      const what = notJson(this, key, value);
      if (what !== undefined) {
        return lost(value, `\`${pathOf(root, inside, key)}\` is ${what}`, inside === undefined);
      }
      if (value !== null && typeof value === "object") {
        inside = { __proto__: null, object: value, key, around: inside };
      }
      return value;
    });
  };

  // Describes the loss of a value in JSON; undefined for a value without loss.
  function notJson(holder, key, value) {
    switch (typeof value) {
      case "number":
        return NumberIsFinite(value) ? undefined : `${value}, which JSON does not have`;
      case "undefined":
        return ArrayIsArray(holder) ? "undefined, which a JSON array cannot have" : undefined;
      case "function":
        return "a function, which JSON does not have";
      case "symbol":
        return "a symbol, which JSON does not have";
      case "object":
        return value === null ? invalidDate(holder, key) : lossyObject(value);
    }
    return undefined;
  }

  // The `toJSON` of an invalid date returns null.
  function invalidDate(holder, key) {
    const given = ObjectGetOwnPropertyDescriptor(holder, key)?.value;
    return core.isDate(given) && NumberIsNaN(DatePrototypeGetTime(given))
      ? "an invalid Date"
      : undefined;
  }

  function lossyObject(value) {
    if (ArrayIsArray(value) || JSONIsRawJSON(value)) return undefined;
    const prototype = ObjectGetPrototypeOf(value);
    if (prototype === ObjectPrototype || prototype === null) return undefined;
    if (core.isPromise(value) || typeof value.then === "function") {
      return "a promise; write `await` before it";
    }
    if (core.isNumberObject(value)) {
      const number = NumberPrototypeValueOf(value);
      return NumberIsFinite(number) ? undefined : `${number}, which JSON does not have`;
    }
    if (core.isBoxedPrimitive(value)) return undefined;
    if (core.isMap(value)) return "a Map; write Object.fromEntries(map) or [...map]";
    if (core.isSet(value)) return "a Set; write [...set]";
    if (core.isNativeError(value) || ObjectPrototypeIsPrototypeOf(ErrorPrototype, value)) {
      return "an Error; write its message";
    }
    if (ArrayBufferIsView(value)) return `of class ${shared.className(value)}; write [...array]`;
    if (typeof value.next === "function") return "an iterator; write [...iterator]";
    if (ObjectKeys(value).length > 0) return undefined;
    return `of class ${shared.className(value)}, of which JSON would be {}`;
  }

  function pathOf(root, inside, key) {
    if (inside === undefined) return root;
    let path = step(inside.object, key);
    for (let i = inside; i.around !== undefined && path.length < PATH_CHARS; i = i.around) {
      path = step(i.around.object, i.key) + path;
    }
    return shared.cut(root + path, PATH_CHARS);
  }

  function step(object, key) {
    if (ArrayIsArray(object)) return `[${key}]`;
    return shared.isIdentifier(key) ? `.${key}` : `[${JSONStringify(key)}]`;
  }
})(globalThis);
