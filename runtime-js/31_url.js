// `URL` and `URLSearchParams`. The `url` crate parses and writes them, behind three ops.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayIsArray,
    ArrayPrototypeSort,
    ObjectKeys,
    String,
    StringPrototypeSlice,
    SymbolIterator,
    SymbolToStringTag,
    TypeError,
  } = primordials;
  const { op_callgate_url_parse, op_callgate_url_set, op_callgate_form_parse, op_callgate_form_write } =
    core.ops;
  const shared = internals.callgate;
  const { push } = shared;

  // Operations of a URL on its parameters, which scripts cannot reach.
  let bind, update;

  class URLSearchParams {
    #pairs = [];
    #changed = () => {};
    constructor(init = "") {
      if (init !== null && typeof init === "object") {
        if (typeof init[SymbolIterator] === "function") {
          const list = primordials.ArrayFrom(init);
          for (let i = 0; i < list.length; i++) {
            const pair = primordials.ArrayFrom(list[i]);
            if (pair.length !== 2) {
              throw new TypeError("URLSearchParams: each item must be a pair of name and value");
            }
            push(this.#pairs, [String(pair[0]), String(pair[1])]);
          }
        } else {
          const keys = ObjectKeys(init);
          for (let i = 0; i < keys.length; i++) {
            push(this.#pairs, [keys[i], String(init[keys[i]])]);
          }
        }
        return;
      }
      let text = String(init);
      if (text[0] === "?") text = StringPrototypeSlice(text, 1);
      this.#pairs = parse(text);
    }
    append(name, value) {
      push(this.#pairs, [String(name), String(value)]);
      this.#changed();
    }
    delete(name, value = undefined) {
      name = String(name);
      const kept = [];
      for (let i = 0; i < this.#pairs.length; i++) {
        const pair = this.#pairs[i];
        const matches = pair[0] === name && (value === undefined || pair[1] === String(value));
        if (!matches) push(kept, pair);
      }
      this.#pairs = kept;
      this.#changed();
    }
    get(name) {
      name = String(name);
      for (let i = 0; i < this.#pairs.length; i++) {
        if (this.#pairs[i][0] === name) return this.#pairs[i][1];
      }
      return null;
    }
    getAll(name) {
      name = String(name);
      const out = [];
      for (let i = 0; i < this.#pairs.length; i++) {
        if (this.#pairs[i][0] === name) push(out, this.#pairs[i][1]);
      }
      return out;
    }
    has(name, value = undefined) {
      name = String(name);
      for (let i = 0; i < this.#pairs.length; i++) {
        const pair = this.#pairs[i];
        if (pair[0] === name && (value === undefined || pair[1] === String(value))) return true;
      }
      return false;
    }
    set(name, value) {
      name = String(name);
      value = String(value);
      const kept = [];
      let found = false;
      for (let i = 0; i < this.#pairs.length; i++) {
        const pair = this.#pairs[i];
        if (pair[0] !== name) push(kept, pair);
        else if (!found) {
          found = true;
          push(kept, [name, value]);
        }
      }
      if (!found) push(kept, [name, value]);
      this.#pairs = kept;
      this.#changed();
    }
    sort() {
      ArrayPrototypeSort(this.#pairs, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      this.#changed();
    }
    get size() { return this.#pairs.length; }
    forEach(callback, thisArg = undefined) {
      for (let i = 0; i < this.#pairs.length; i++) {
        primordials.ReflectApply(callback, thisArg, [this.#pairs[i][1], this.#pairs[i][0], this]);
      }
    }
    *entries() {
      for (let i = 0; i < this.#pairs.length; i++) yield [this.#pairs[i][0], this.#pairs[i][1]];
    }
    *keys() {
      for (let i = 0; i < this.#pairs.length; i++) yield this.#pairs[i][0];
    }
    *values() {
      for (let i = 0; i < this.#pairs.length; i++) yield this.#pairs[i][1];
    }
    [SymbolIterator]() { return this.entries(); }
    toString() {
      const flat = [];
      for (let i = 0; i < this.#pairs.length; i++) {
        push(flat, this.#pairs[i][0]);
        push(flat, this.#pairs[i][1]);
      }
      return op_callgate_form_write(flat);
    }
    get [SymbolToStringTag]() { return "URLSearchParams"; }
    static {
      bind = (params, changed) => params.#changed = changed;
      update = (params, text) => params.#pairs = parse(text);
      push(shared.shows, (value) => {
        if (!(#pairs in value)) return undefined;
        const pairs = value.#pairs;
        let text = "";
        for (let i = 0; i < pairs.length && text.length < 10000; i++) {
          text += `${i > 0 ? ", " : ""}${shared.quote(pairs[i][0])} => ${shared.quote(pairs[i][1])}`;
        }
        return pairs.length === 0 ? "URLSearchParams {}" : `URLSearchParams { ${text} }`;
      });
    }
  }

  function parse(text) {
    const flat = op_callgate_form_parse(text);
    const pairs = [];
    for (let i = 0; i + 1 < flat.length; i += 2) push(pairs, [flat[i], flat[i + 1]]);
    return pairs;
  }

  // The parts in the order of the ops.
  const HREF = 0, ORIGIN = 1, PROTOCOL = 2, USERNAME = 3, PASSWORD = 4, HOST = 5, HOSTNAME = 6,
    PORT = 7, PATHNAME = 8, SEARCH = 9, HASH = 10;

  class URL {
    #parts;
    #params = null;
    constructor(url, base = undefined) {
      const text = String(url);
      const parts = op_callgate_url_parse(text, base === undefined ? "" : String(base), base !== undefined);
      if (!ArrayIsArray(parts)) {
        const error = new TypeError(`Invalid URL: ${shared.quote(shared.cut(text, 200))}`);
        error.code = "ERR_INVALID_URL";
        throw error;
      }
      this.#parts = parts;
    }
    #set(part, value) {
      const parts = op_callgate_url_set(this.#parts[HREF], part, String(value));
      if (!ArrayIsArray(parts)) {
        if (part === HREF) throw new TypeError(`Invalid URL: ${shared.quote(shared.cut(String(value), 200))}`);
        return;
      }
      this.#parts = parts;
      if (this.#params !== null && (part === HREF || part === SEARCH)) {
        update(this.#params, StringPrototypeSlice(parts[SEARCH], 1));
      }
    }
    get href() { return this.#parts[HREF]; }
    set href(value) { this.#set(HREF, value); }
    get origin() { return this.#parts[ORIGIN]; }
    get protocol() { return this.#parts[PROTOCOL]; }
    set protocol(value) { this.#set(PROTOCOL, value); }
    get username() { return this.#parts[USERNAME]; }
    set username(value) { this.#set(USERNAME, value); }
    get password() { return this.#parts[PASSWORD]; }
    set password(value) { this.#set(PASSWORD, value); }
    get host() { return this.#parts[HOST]; }
    set host(value) { this.#set(HOST, value); }
    get hostname() { return this.#parts[HOSTNAME]; }
    set hostname(value) { this.#set(HOSTNAME, value); }
    get port() { return this.#parts[PORT]; }
    set port(value) { this.#set(PORT, value); }
    get pathname() { return this.#parts[PATHNAME]; }
    set pathname(value) { this.#set(PATHNAME, value); }
    get search() { return this.#parts[SEARCH]; }
    set search(value) { this.#set(SEARCH, value); }
    get hash() { return this.#parts[HASH]; }
    set hash(value) { this.#set(HASH, value); }
    get searchParams() { return this.#searchParams(); }
    #searchParams() {
      if (this.#params === null) {
        const params = new URLSearchParams(this.#parts[SEARCH]);
        bind(params, () => {
          const parts = op_callgate_url_set(this.#parts[HREF], SEARCH, params.toString());
          if (ArrayIsArray(parts)) this.#parts = parts;
        });
        this.#params = params;
      }
      return this.#params;
    }
    toString() { return this.#parts[HREF]; }
    toJSON() { return this.#parts[HREF]; }
    get [SymbolToStringTag]() { return "URL"; }
    static canParse(url, base = undefined) {
      return ArrayIsArray(
        op_callgate_url_parse(String(url), base === undefined ? "" : String(base), base !== undefined),
      );
    }
    static parse(url, base = undefined) {
      return URL.canParse(url, base) ? new URL(url, base) : null;
    }
    static {
      push(shared.shows, (value) => {
        if (!(#parts in value)) return undefined;
        const parts = value.#parts;
        return {
          name: "URL",
          fields: {
            href: parts[HREF],
            origin: parts[ORIGIN],
            protocol: parts[PROTOCOL],
            username: parts[USERNAME],
            password: parts[PASSWORD],
            host: parts[HOST],
            hostname: parts[HOSTNAME],
            port: parts[PORT],
            pathname: parts[PATHNAME],
            search: parts[SEARCH],
            searchParams: value.#searchParams(),
            hash: parts[HASH],
          },
        };
      });
    }
  }
  shared.urlGlobals = { URL, URLSearchParams };
})(globalThis);
