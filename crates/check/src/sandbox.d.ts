interface Console {
  debug(...data: unknown[]): void;
  log(...data: unknown[]): void;
  info(...data: unknown[]): void;
  warn(...data: unknown[]): void;
  error(...data: unknown[]): void;
  dir(value?: unknown, options?: { depth?: number | null; [key: string]: unknown }): void;
  dirxml(...data: unknown[]): void;
  table(data?: unknown, columns?: readonly string[]): void;
  assert(condition?: unknown, ...data: unknown[]): void;
  count(label?: string): void;
  countReset(label?: string): void;
  time(label?: string): void;
  timeLog(label?: string, ...data: unknown[]): void;
  timeEnd(label?: string): void;
  group(...data: unknown[]): void;
  groupCollapsed(...data: unknown[]): void;
  groupEnd(): void;
  trace(...data: unknown[]): void;
  clear(): void;
}
declare var console: Console;

interface Array<T> {
  /** `[].concat(list)` is a list of the same. */
  concat<U>(...items: (U | ConcatArray<U>)[]): (T | U)[];
  fill(value?: T, start?: number, end?: number): this;
}
interface PromiseFulfilledResult<T> {
  reason?: undefined;
}
interface PromiseRejectedResult {
  value?: undefined;
}

interface ErrorConstructor {
  captureStackTrace(target: object, leaveOut?: Function): void;
  stackTraceLimit: number;
}
interface JSON {
  /** Stands for this JSON text of a string, number, boolean or null in `JSON.stringify`. */
  rawJSON(text: string | number | bigint | boolean | null): { readonly rawJSON: string };
  isRawJSON(value: unknown): value is { readonly rawJSON: string };
}
interface Math {
  sumPrecise(numbers: Iterable<number>): number;
}
interface IteratorConstructor {
  concat<T>(...items: Iterable<T>[]): IteratorObject<T, undefined, unknown>;
}
declare namespace Intl {
  interface Locale {
    readonly variants: string | undefined;
  }
}

declare function setTimeout(callback: (...args: any[]) => unknown, delay?: number, ...args: any[]): number;
declare function setInterval(callback: (...args: any[]) => unknown, delay?: number, ...args: any[]): number;
declare function setImmediate(callback: (...args: any[]) => unknown, ...args: any[]): number;
declare function clearTimeout(id?: number | null): void;
declare function clearInterval(id?: number | null): void;
declare function clearImmediate(id?: number | null): void;
declare function queueMicrotask(callback: () => unknown): void;

declare function atob(data: string): string;
declare function btoa(data: string): string;
declare function structuredClone<T>(value: T, options?: { transfer?: readonly never[] }): T;

interface Crypto {
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
  getRandomValues<
    T extends
      | Int8Array
      | Uint8Array
      | Uint8ClampedArray
      | Int16Array
      | Uint16Array
      | Int32Array
      | Uint32Array
      | BigInt64Array
      | BigUint64Array,
  >(array: T): T;
}
declare var crypto: Crypto;

interface Performance {
  now(): number;
  readonly timeOrigin: number;
  toJSON(): { timeOrigin: number };
}
declare var performance: Performance;

declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(input?: string): Uint8Array<ArrayBuffer>;
  encodeInto(input: string, target: Uint8Array): { read: number; written: number };
}
declare class TextDecoder {
  constructor(label?: "utf-8" | "utf8" | "UTF-8" | (string & {}), options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}
declare class URLSearchParams {
  constructor(init?: string | URLSearchParams | Iterable<readonly [string, string]> | Record<string, string>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, key: string, params: URLSearchParams) => void, thisArg?: unknown): void;
  entries(): IteratorObject<[string, string], undefined, unknown>;
  keys(): IteratorObject<string, undefined, unknown>;
  values(): IteratorObject<string, undefined, unknown>;
  [Symbol.iterator](): IteratorObject<[string, string], undefined, unknown>;
  toString(): string;
}

declare class DOMException extends Error {
  constructor(message?: string, options?: string | { name?: string; cause?: unknown });
  readonly name: string;
  readonly code: number;
  static readonly INDEX_SIZE_ERR: 1;
  static readonly HIERARCHY_REQUEST_ERR: 3;
  static readonly WRONG_DOCUMENT_ERR: 4;
  static readonly INVALID_CHARACTER_ERR: 5;
  static readonly NO_MODIFICATION_ALLOWED_ERR: 7;
  static readonly NOT_FOUND_ERR: 8;
  static readonly NOT_SUPPORTED_ERR: 9;
  static readonly IN_USE_ATTRIBUTE_ERR: 10;
  static readonly INVALID_STATE_ERR: 11;
  static readonly SYNTAX_ERR: 12;
  static readonly INVALID_MODIFICATION_ERR: 13;
  static readonly NAMESPACE_ERR: 14;
  static readonly INVALID_ACCESS_ERR: 15;
  static readonly TYPE_MISMATCH_ERR: 17;
  static readonly SECURITY_ERR: 18;
  static readonly NETWORK_ERR: 19;
  static readonly ABORT_ERR: 20;
  static readonly URL_MISMATCH_ERR: 21;
  static readonly QUOTA_EXCEEDED_ERR: 22;
  static readonly TIMEOUT_ERR: 23;
  static readonly INVALID_NODE_TYPE_ERR: 24;
  static readonly DATA_CLONE_ERR: 25;
}
declare class Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  readonly isTrusted: boolean;
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}
declare class CustomEvent<T = any> extends Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean; detail?: T });
  readonly detail: T;
}
declare class EventTarget {
  addEventListener(
    type: string,
    callback: ((event: any) => unknown) | { handleEvent(event: any): unknown } | null,
    options?: boolean | { once?: boolean; signal?: AbortSignal; passive?: boolean; capture?: boolean },
  ): void;
  removeEventListener(
    type: string,
    callback: ((event: any) => unknown) | { handleEvent(event: any): unknown } | null,
    options?: unknown,
  ): void;
  dispatchEvent(event: Event): boolean;
}
declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static timeout(ms: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => unknown) | null;
  throwIfAborted(): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
