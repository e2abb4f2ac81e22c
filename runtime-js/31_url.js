// `URL` and `URLSearchParams`. Parsing and writing is done by the `url` crate behind three ops.
"use strict";

((globalThis) => {
  const { core, primordials, internals } = globalThis.__bootstrap;
  const {
    ArrayIsArray,
    ArrayPrototypePush,
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

  const update = primordials.Symbol("update");
  const bind = primordials.Symbol("bind");

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
            ArrayPrototypePush(this.#pairs, [String(pair[0]), String(pair[1])]);
          }
        } else {
          const keys = ObjectKeys(init);
          for (let i = 0; i < keys.length; i++) {
            ArrayPrototypePush(this.#pairs, [keys[i], String(init[keys[i]])]);
          }
        }
        return;
      }
      let text = String(init);
      if (text[0] === "?") text = StringPrototypeSlice(text, 1);
      this.#pairs = parse(text);
    }
    [bind](changed) { this.#changed = changed; }
    [update](text) { this.#pairs = parse(text); }
    append(name, value) {
      ArrayPrototypePush(this.#pairs, [String(name), String(value)]);
      this.#changed();
    }
    delete(name, value = undefined) {
      name = String(name);
      const kept = [];
      for (let i = 0; i < this.#pairs.length; i++) {
        const pair = this.#pairs[i];
        const matches = pair[0] === name && (value === undefined || pair[1] === String(value));
        if (!matches) ArrayPrototypePush(kept, pair);
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
        if (this.#pairs[i][0] === name) ArrayPrototypePush(out, this.#pairs[i][1]);
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
        if (pair[0] !== name) ArrayPrototypePush(kept, pair);
        else if (!found) {
          found = true;
          ArrayPrototypePush(kept, [name, value]);
        }
      }
      if (!found) ArrayPrototypePush(kept, [name, value]);
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
        ArrayPrototypePush(flat, this.#pairs[i][0]);
        ArrayPrototypePush(flat, this.#pairs[i][1]);
      }
      return op_callgate_form_write(flat);
    }
    get [SymbolToStringTag]() { return "URLSearchParams"; }
    static pairsOf(params) { return params.#pairs; }
  }
  const { pairsOf } = URLSearchParams;
  delete URLSearchParams.pairsOf;
  URLSearchParams.prototype[shared.show] = (params) => {
    if (params === URLSearchParams.prototype) return undefined;
    const pairs = pairsOf(params);
    let text = "";
    for (let i = 0; i < pairs.length && text.length < 10000; i++) {
      text += `${i > 0 ? ", " : ""}${shared.quote(pairs[i][0])} => ${shared.quote(pairs[i][1])}`;
    }
    return pairs.length === 0 ? "URLSearchParams {}" : `URLSearchParams { ${text} }`;
  };

  function parse(text) {
    const flat = op_callgate_form_parse(text);
    const pairs = [];
    for (let i = 0; i + 1 < flat.length; i += 2) ArrayPrototypePush(pairs, [flat[i], flat[i + 1]]);
    return pairs;
  }

  // The order of the parts that the ops give.
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
      if (part === HREF || part === SEARCH) this.#params?.[update](StringPrototypeSlice(parts[SEARCH], 1));
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
    get searchParams() {
      if (this.#params === null) {
        const params = new URLSearchParams(this.#parts[SEARCH]);
        params[bind](() => {
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
  }
  URL.prototype[shared.show] = (url) =>
    url === URL.prototype ? undefined : {
      name: "URL",
      fields: {
        href: url.href,
        origin: url.origin,
        protocol: url.protocol,
        username: url.username,
        password: url.password,
        host: url.host,
        hostname: url.hostname,
        port: url.port,
        pathname: url.pathname,
        search: url.search,
        searchParams: url.searchParams,
        hash: url.hash,
      },
    };

  shared.urlGlobals = { URL, URLSearchParams };
})(globalThis);
