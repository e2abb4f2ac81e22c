// Timers, text encoding, base64, `ArrayBuffer`, `structuredClone`, `crypto` and `performance`.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayBufferIsView,
    ArrayBufferPrototype,
    ArrayPrototypeIncludes,
    DataViewPrototypeGetBuffer,
    DataViewPrototypeGetByteLength,
    DataViewPrototypeGetByteOffset,
    MathMin,
    NumberPrototypeToString,
    ObjectDefineProperty,
    ObjectGetOwnPropertyDescriptor,
    ObjectPrototypeIsPrototypeOf,
    RangeError,
    ReflectApply,
    ReflectConstruct,
    ReflectOwnKeys,
    SafeMap,
    String,
    StringFromCharCode,
    StringPrototypeCharCodeAt,
    StringPrototypeIndexOf,
    StringPrototypePadStart,
    StringPrototypeSlice,
    StringPrototypeToLowerCase,
    StringPrototypeTrim,
    SymbolToStringTag,
    TypedArrayPrototypeGetBuffer,
    TypedArrayPrototypeGetByteLength,
    TypedArrayPrototypeGetByteOffset,
    TypedArrayPrototypeGetSymbolToStringTag,
    TypedArrayPrototypeSet,
    TypedArrayPrototypeSubarray,
    TypeError,
    TypeErrorPrototype,
    Uint8Array,
  } = primordials;
  const {
    op_callgate_clear_timer,
    op_callgate_clone,
    op_callgate_decode,
    op_callgate_encode,
    op_callgate_line,
    op_callgate_now,
    op_callgate_random,
    op_callgate_set_timer,
    op_callgate_time_origin,
  } = core.ops;
  const shared = internals.callgate;
  const { DOMException } = shared;

  // --- timers ---------------------------------------------------------------------------------

  // The callback of each timer by id. The worker has the due times.
  const timers = new SafeMap();
  let lastTimer = 0;

  // Kinds of timers: one that does not keep the script alive; one that does so only until the script
  // returns; all others. src/timers.rs of the worker has the same numbers.
  shared.QUIET = 0;
  const REPEATS = 1, ONCE = 2;

  shared.setTimer = (callback, delay, args, kind) => {
    if (typeof callback !== "function") {
      throw new TypeError("a timer needs a function to call");
    }
    const timer = { __proto__: null, callback, delay: +delay, args, kind, line: op_callgate_line() };
    const id = ++lastTimer;
    timers.set(id, timer);
    op_callgate_set_timer(id, timer.delay, kind, timer.line);
    return id;
  };

  // Called by the worker when a timer is due.
  shared.fireTimer = (id) => {
    const timer = timers.get(id);
    if (timer === undefined) return;
    if (timer.kind !== REPEATS) timers.delete(id);
    try {
      ReflectApply(timer.callback, undefined, timer.args);
    } catch (error) {
      shared.fail(error);
    }
    if (timers.has(id)) op_callgate_set_timer(id, timer.delay, timer.kind, timer.line);
  };

  function setTimeout(callback, delay = 0, ...args) {
    return shared.setTimer(callback, delay, args, ONCE);
  }
  function setInterval(callback, delay = 0, ...args) {
    return shared.setTimer(callback, delay, args, REPEATS);
  }
  function setImmediate(callback, ...args) {
    return shared.setTimer(callback, 0, args, ONCE);
  }
  function clearTimeout(id = 0) {
    id = +id;
    if (timers.delete(id)) op_callgate_clear_timer(id);
  }
  function clearInterval(id = 0) {
    clearTimeout(id);
  }
  function clearImmediate(id = 0) {
    clearTimeout(id);
  }

  // --- text -----------------------------------------------------------------------------------

  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(input = "") {
      const text = String(input);
      // The length first: a buffer from V8 counts against the limit on buffers.
      const bytes = new Uint8Array(core.byteLength(text));
      op_callgate_encode(text, bytes);
      return bytes;
    }
    encodeInto(input, target) {
      if (TypedArrayPrototypeGetSymbolToStringTag(target) !== "Uint8Array") {
        throw new TypeError("encodeInto needs a Uint8Array");
      }
      const text = String(input);
      const room = TypedArrayPrototypeGetByteLength(target);
      let read = 0;
      let written = 0;
      while (read < text.length) {
        const code = StringPrototypeCharCodeAt(text, read);
        const next = StringPrototypeCharCodeAt(text, read + 1);
        const pair = code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000;
        const size = code < 0x80 ? 1 : code < 0x800 ? 2 : pair ? 4 : 3;
        if (written + size > room) break;
        written += size;
        read += pair ? 2 : 1;
      }
      if (written > 0) {
        op_callgate_encode(
          StringPrototypeSlice(text, 0, read),
          TypedArrayPrototypeSubarray(target, 0, written),
        );
      }
      return { read, written };
    }
    get [SymbolToStringTag]() { return "TextEncoder"; }
  }

  const UTF8_LABELS = ["utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"];

  class TextDecoder {
    #fatal;
    #ignoreBOM;
    #pending = new Uint8Array(0);
    #started = false;
    constructor(label = "utf-8", options = {}) {
      const name = StringPrototypeToLowerCase(StringPrototypeTrim(String(label)));
      if (!ArrayPrototypeIncludes(UTF8_LABELS, name)) {
        throw new RangeError(`TextDecoder knows utf-8 only, not ${shared.quote(shared.cut(name, 100))}`);
      }
      this.#fatal = !!options?.fatal;
      this.#ignoreBOM = !!options?.ignoreBOM;
    }
    get encoding() { return "utf-8"; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    decode(input = new Uint8Array(0), options = {}) {
      let bytes = bytesOf(input);
      const stream = !!options?.stream;
      if (this.#pending.length > 0) {
        const joined = new Uint8Array(this.#pending.length + bytes.length);
        TypedArrayPrototypeSet(joined, this.#pending, 0);
        TypedArrayPrototypeSet(joined, bytes, this.#pending.length);
        bytes = joined;
        this.#pending = new Uint8Array(0);
      }
      if (stream) {
        const held = unfinished(bytes);
        if (held > 0) {
          const from = bytes.length - held;
          this.#pending = new Uint8Array(held);
          TypedArrayPrototypeSet(this.#pending, TypedArrayPrototypeSubarray(bytes, from), 0);
          bytes = TypedArrayPrototypeSubarray(bytes, 0, from);
        }
      }
      let text = op_callgate_decode(bytes, this.#fatal);
      if (text === undefined || text === null) {
        this.#pending = new Uint8Array(0);
        this.#started = false;
        const error = new TypeError("The encoded data was not valid for encoding utf-8");
        error.code = "ERR_ENCODING_INVALID_ENCODED_DATA";
        throw error;
      }
      if (!this.#started && !this.#ignoreBOM && text[0] === "\ufeff") {
        text = StringPrototypeSlice(text, 1);
      }
      this.#started = stream && (this.#started || text !== "");
      return text;
    }
    get [SymbolToStringTag]() { return "TextDecoder"; }
  }

  // Bytes of an incomplete character at the end.
  function unfinished(bytes) {
    const most = MathMin(3, bytes.length);
    for (let back = 1; back <= most; back++) {
      const byte = bytes[bytes.length - back];
      if (byte >= 0xc0) {
        const size = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
        return size > back ? back : 0;
      }
      if (byte < 0x80) return 0;
    }
    return 0;
  }

  function bytesOf(input) {
    if (core.isArrayBuffer(input)) return new Uint8Array(input);
    if (ArrayBufferIsView(input)) {
      if (core.isTypedArray(input)) {
        return new Uint8Array(
          TypedArrayPrototypeGetBuffer(input),
          TypedArrayPrototypeGetByteOffset(input),
          TypedArrayPrototypeGetByteLength(input),
        );
      }
      return new Uint8Array(
        DataViewPrototypeGetBuffer(input),
        DataViewPrototypeGetByteOffset(input),
        DataViewPrototypeGetByteLength(input),
      );
    }
    throw new TypeError("the input must be an ArrayBuffer or a view of one");
  }

  // --- base64 ---------------------------------------------------------------------------------

  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  function btoa(data) {
    if (arguments.length === 0) throw new TypeError("btoa needs a string");
    const text = String(data);
    let out = "";
    for (let i = 0; i < text.length; i += 3) {
      const a = StringPrototypeCharCodeAt(text, i);
      const b = i + 1 < text.length ? StringPrototypeCharCodeAt(text, i + 1) : 0;
      const c = i + 2 < text.length ? StringPrototypeCharCodeAt(text, i + 2) : 0;
      if (a > 255 || b > 255 || c > 255) {
        throw new DOMException(
          "btoa takes characters up to U+00FF only; encode the text with TextEncoder first",
          "InvalidCharacterError",
        );
      }
      out += ALPHABET[a >> 2] + ALPHABET[((a & 3) << 4) | (b >> 4)];
      out += i + 1 < text.length ? ALPHABET[((b & 15) << 2) | (c >> 6)] : "=";
      out += i + 2 < text.length ? ALPHABET[c & 63] : "=";
    }
    return out;
  }

  function atob(data) {
    if (arguments.length === 0) throw new TypeError("atob needs a string");
    const given = String(data);
    let text = "";
    for (let i = 0; i < given.length; i++) {
      const char = given[i];
      if (char !== " " && char !== "\t" && char !== "\n" && char !== "\f" && char !== "\r") text += char;
    }
    let length = text.length;
    if (length % 4 === 0 && length > 0) {
      if (text[length - 1] === "=") length--;
      if (text[length - 1] === "=") length--;
    }
    let out = "";
    let bits = 0;
    let have = 0;
    for (let i = 0; i < length; i++) {
      const value = StringPrototypeIndexOf(ALPHABET, text[i]);
      if (value < 0 || length % 4 === 1) {
        throw new DOMException("the string is not base64", "InvalidCharacterError");
      }
      bits = ((bits << 6) | value) & 0xffffff;
      have += 6;
      if (have >= 8) {
        have -= 8;
        out += StringFromCharCode((bits >> have) & 255);
      }
    }
    return out;
  }

  // --- array buffers --------------------------------------------------------------------------

  const PlainArrayBuffer = primordials.ArrayBuffer;

  // The worker cannot count the memory of resizable buffers, so this constructor, the only source of
  // buffers, makes none.
  const ArrayBuffer = function ArrayBuffer(length, options = undefined) {
    if (new.target === undefined) throw new TypeError("Constructor ArrayBuffer requires 'new'");
    if (typeof options === "object" && options !== null && options.maxByteLength !== undefined) {
      throw new RangeError("an ArrayBuffer cannot be resizable here; leave `maxByteLength` out");
    }
    return ReflectConstruct(PlainArrayBuffer, [length], new.target);
  };
  const statics = ReflectOwnKeys(PlainArrayBuffer);
  for (let i = 0; i < statics.length; i++) {
    const descriptor = ObjectGetOwnPropertyDescriptor(PlainArrayBuffer, statics[i]);
    ObjectDefineProperty(ArrayBuffer, statics[i], { __proto__: null, ...descriptor });
  }
  ObjectDefineProperty(ArrayBufferPrototype, "constructor", { __proto__: null, value: ArrayBuffer });

  // --- structuredClone ------------------------------------------------------------------------

  function structuredClone(value, options = undefined) {
    if (arguments.length === 0) throw new TypeError("structuredClone needs a value");
    if (options?.transfer !== undefined && options.transfer.length > 0) {
      throw new DOMException("transfer is not supported here; leave it out", "DataCloneError");
    }
    try {
      return op_callgate_clone(value);
    } catch (error) {
      if (ObjectPrototypeIsPrototypeOf(TypeErrorPrototype, error)) {
        throw new DOMException(error.message, "DataCloneError");
      }
      throw error;
    }
  }

  // --- crypto ---------------------------------------------------------------------------------

  const INTEGER_ARRAYS = [
    "Int8Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "Int16Array",
    "Uint16Array",
    "Int32Array",
    "Uint32Array",
    "BigInt64Array",
    "BigUint64Array",
  ];

  const crypto = {
    getRandomValues(array) {
      if (!ArrayPrototypeIncludes(INTEGER_ARRAYS, TypedArrayPrototypeGetSymbolToStringTag(array))) {
        throw new DOMException("getRandomValues needs a typed array of integers", "TypeMismatchError");
      }
      const bytes = bytesOf(array);
      if (bytes.length > 65536) {
        throw new DOMException(
          `getRandomValues gives at most 65536 bytes at once, not ${bytes.length}`,
          "QuotaExceededError",
        );
      }
      op_callgate_random(bytes);
      return array;
    },
    randomUUID() {
      const bytes = new Uint8Array(16);
      op_callgate_random(bytes);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      let out = "";
      for (let i = 0; i < 16; i++) {
        if (i === 4 || i === 6 || i === 8 || i === 10) out += "-";
        out += StringPrototypePadStart(NumberPrototypeToString(bytes[i], 16), 2, "0");
      }
      return out;
    },
  };
  tag(crypto, "Crypto");

  // --- performance ----------------------------------------------------------------------------

  const performance = {
    now() { return op_callgate_now(); },
    get timeOrigin() { return op_callgate_time_origin(); },
    toJSON() { return { timeOrigin: op_callgate_time_origin() }; },
  };
  tag(performance, "Performance");

  function tag(object, value) {
    ObjectDefineProperty(object, SymbolToStringTag, { __proto__: null, value, configurable: true });
  }

  shared.webGlobals = {
    setTimeout,
    setInterval,
    setImmediate,
    clearTimeout,
    clearInterval,
    clearImmediate,
    TextEncoder,
    TextDecoder,
    btoa,
    atob,
    structuredClone,
    ArrayBuffer,
    crypto,
    performance,
  };
})(globalThis);
