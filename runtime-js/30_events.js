// `DOMException`, `Event`, `CustomEvent`, `EventTarget`, `AbortController` and `AbortSignal`, without
// the parts that need a document.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayPrototypeSlice,
    ArrayPrototypeSplice,
    Error,
    ErrorCaptureStackTrace,
    FunctionPrototypeCall,
    ObjectDefineProperty,
    ObjectKeys,
    ReflectApply,
    SafeMap,
    SafeSet,
    SafeSetIterator,
    String,
    Symbol,
    SymbolToStringTag,
    TypeError,
  } = primordials;
  const { op_callgate_now } = core.ops;
  const shared = internals.callgate;
  const { push } = shared;

  const CODES = {
    __proto__: null,
    IndexSizeError: 1,
    HierarchyRequestError: 3,
    WrongDocumentError: 4,
    InvalidCharacterError: 5,
    NoModificationAllowedError: 7,
    NotFoundError: 8,
    NotSupportedError: 9,
    InUseAttributeError: 10,
    InvalidStateError: 11,
    SyntaxError: 12,
    InvalidModificationError: 13,
    NamespaceError: 14,
    InvalidAccessError: 15,
    TypeMismatchError: 17,
    SecurityError: 18,
    NetworkError: 19,
    AbortError: 20,
    URLMismatchError: 21,
    QuotaExceededError: 22,
    TimeoutError: 23,
    InvalidNodeTypeError: 24,
    DataCloneError: 25,
  };

  class DOMException extends Error {
    #name;
    constructor(message = "", options = undefined) {
      super(String(message));
      const name = typeof options === "object" ? options?.name : options;
      this.#name = name === undefined ? "Error" : String(name);
      if (typeof options === "object" && options !== null && "cause" in options) {
        ObjectDefineProperty(this, "cause", {
          __proto__: null,
          value: options.cause,
          writable: true,
          configurable: true,
        });
      }
      ErrorCaptureStackTrace(this, DOMException);
    }
    get name() {
      return this.#name;
    }
    get code() {
      return CODES[this.#name] ?? 0;
    }
    get [SymbolToStringTag]() {
      return "DOMException";
    }
  }

  const dispatching = Symbol("dispatching");

  class Event {
    #type;
    #options;
    #target = null;
    #prevented = false;
    #stopped = false;
    #time = op_callgate_now();
    constructor(type, options = {}) {
      if (arguments.length === 0) throw new TypeError("Event needs a type");
      this.#type = String(type);
      this.#options = options ?? {};
    }
    get type() { return this.#type; }
    get target() { return this.#target; }
    get currentTarget() { return this.#target; }
    get bubbles() { return !!this.#options.bubbles; }
    get cancelable() { return !!this.#options.cancelable; }
    get composed() { return !!this.#options.composed; }
    get defaultPrevented() { return this.#prevented; }
    get timeStamp() { return this.#time; }
    get isTrusted() { return false; }
    preventDefault() {
      if (this.cancelable) this.#prevented = true;
    }
    stopPropagation() {}
    stopImmediatePropagation() { this.#stopped = true; }
    [dispatching](target) {
      this.#target = target;
      return () => this.#stopped;
    }
    get [SymbolToStringTag]() { return "Event"; }
  }

  class CustomEvent extends Event {
    #detail;
    constructor(type, options = {}) {
      super(type, options);
      this.#detail = options?.detail ?? null;
    }
    get detail() { return this.#detail; }
    get [SymbolToStringTag]() { return "CustomEvent"; }
  }

  class EventTarget {
    #listeners = new SafeMap();
    addEventListener(type, callback, options = undefined) {
      if (callback === null || callback === undefined) return;
      type = String(type);
      const once = typeof options === "object" && !!options?.once;
      const signal = typeof options === "object" ? options?.signal : undefined;
      if (signal?.aborted) return;
      let list = this.#listeners.get(type);
      if (list === undefined) this.#listeners.set(type, list = []);
      for (let i = 0; i < list.length; i++) if (list[i].callback === callback) return;
      push(list, { __proto__: null, callback, once });
      signal?.addEventListener("abort", () => this.removeEventListener(type, callback));
    }
    removeEventListener(type, callback) {
      const list = this.#listeners.get(String(type));
      if (list === undefined) return;
      for (let i = 0; i < list.length; i++) {
        if (list[i].callback === callback) {
          list[i].removed = true;
          ArrayPrototypeSplice(list, i, 1);
          return;
        }
      }
    }
    dispatchEvent(event) {
      const isStopped = event[dispatching](this);
      const list = ArrayPrototypeSlice(this.#listeners.get(event.type) ?? []);
      for (let i = 0; i < list.length && !isStopped(); i++) {
        const entry = list[i];
        if (entry.removed) continue;
        if (entry.once) this.removeEventListener(event.type, entry.callback);
        try {
          if (typeof entry.callback === "function") ReflectApply(entry.callback, this, [event]);
          else ReflectApply(entry.callback.handleEvent, entry.callback, [event]);
        } catch (error) {
          // As in Node.js: an error in a listener does not stop the others, and ends the run.
          shared.fail(error);
        }
      }
      return !event.defaultPrevented;
    }
    get [SymbolToStringTag]() { return "EventTarget"; }
  }

  const key = Symbol("key");
  const abort = Symbol("abort");

  class AbortSignal extends EventTarget {
    #aborted = false;
    #reason = undefined;
    // Callbacks that run once at the abort, before the listeners; undefined until the first is added.
    #followers = undefined;
    onabort = null;
    static {
      // For the other files. A script's changes to the prototype have no effect on these functions.
      shared.signals = {
        __proto__: null,
        is: (value) => typeof value === "object" && value !== null && #aborted in value,
        isAborted: (signal) => signal.#aborted,
        reason: (signal) => signal.#reason,
        follow: (signal, follower) => (signal.#followers ??= new SafeSet()).add(follower),
        unfollow: (signal, follower) => signal.#followers?.delete(follower),
      };
      push(shared.shows, (value) =>
        #aborted in value ? { name: "AbortSignal", fields: { aborted: value.#aborted } } : undefined);
    }
    constructor(given = undefined) {
      if (given !== key) throw new TypeError("Illegal constructor");
      super();
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() {
      if (this.#aborted) throw this.#reason;
    }
    [abort](reason) {
      if (this.#aborted) return;
      this.#aborted = true;
      this.#reason = reason === undefined
        ? new DOMException("The signal has been aborted", "AbortError")
        : reason;
      const followers = this.#followers;
      this.#followers = undefined;
      if (followers !== undefined) {
        for (const follower of new SafeSetIterator(followers)) follower(this);
      }
      const event = new Event("abort");
      if (typeof this.onabort === "function") FunctionPrototypeCall(this.onabort, this, event);
      this.dispatchEvent(event);
    }
    static abort(reason = undefined) {
      const signal = new AbortSignal(key);
      signal[abort](reason);
      return signal;
    }
    static timeout(ms) {
      const signal = new AbortSignal(key);
      const fire = () => signal[abort](new DOMException("Signal timed out.", "TimeoutError"));
      // A signal without waiting calls does not keep the script alive.
      shared.setTimer(fire, ms, [], shared.QUIET);
      return signal;
    }
    static any(signals) {
      const { is, isAborted, reason, follow, unfollow } = shared.signals;
      const signal = new AbortSignal(key);
      const list = [...new primordials.SafeArrayIterator(primordials.ArrayFrom(signals))];
      for (let i = 0; i < list.length; i++) {
        if (!is(list[i])) throw new TypeError("AbortSignal.any needs signals and nothing else");
      }
      for (let i = 0; i < list.length; i++) {
        if (isAborted(list[i])) {
          signal[abort](reason(list[i]));
          return signal;
        }
      }
      const follower = (aborted) => {
        for (let i = 0; i < list.length; i++) unfollow(list[i], follower);
        signal[abort](reason(aborted));
      };
      for (let i = 0; i < list.length; i++) follow(list[i], follower);
      return signal;
    }
    get [SymbolToStringTag]() { return "AbortSignal"; }
  }

  class AbortController {
    #signal = new AbortSignal(key);
    get signal() { return this.#signal; }
    abort(reason = undefined) { this.#signal[abort](reason); }
    get [SymbolToStringTag]() { return "AbortController"; }
  }

  const names = ObjectKeys(CODES);
  for (let i = 0; i < names.length; i++) {
    const constant = constantName(names[i]);
    const descriptor = { __proto__: null, value: CODES[names[i]], enumerable: true };
    ObjectDefineProperty(DOMException, constant, descriptor);
    ObjectDefineProperty(DOMException.prototype, constant, descriptor);
  }

  // IndexSizeError to INDEX_SIZE_ERR
  function constantName(name) {
    if (name === "URLMismatchError") return "URL_MISMATCH_ERR";
    let out = "";
    for (let i = 0; i < name.length - "Error".length; i++) {
      const char = name[i];
      if (i > 0 && char >= "A" && char <= "Z") out += "_";
      out += primordials.StringPrototypeToUpperCase(char);
    }
    return `${out}_ERR`;
  }

  shared.DOMException = DOMException;
  shared.eventGlobals = { DOMException, Event, CustomEvent, EventTarget, AbortSignal, AbortController };
})(globalThis);
