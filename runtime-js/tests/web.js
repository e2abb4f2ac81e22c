// Timers, URL, text, clones, events and the rest.
const order = [];
setTimeout(() => order.push("20 ms"), 20);
setTimeout(() => order.push("0 ms"), 0);
const cancelled = setTimeout(() => order.push("never"), 5);
clearTimeout(cancelled);
queueMicrotask(() => order.push("microtask"));
let ticks = 0;
await new Promise((resolve) => { const id = setInterval(() => { if (++ticks === 3) { clearInterval(id); resolve(); } }, 10); });
console.log(order.slice(0, 2), ticks, typeof performance.now(), performance.timeOrigin > 1.7e12);
await new Promise((resolve) => setTimeout((a, b) => { console.log(a, b); resolve(); }, 1, "arg", 2));

const url = new URL("../c?x=1&y=a%20b#frag", "https://user:pw@Example.com:8443/a/b");
console.log(url.href, url.origin, url.searchParams.get("y"));
url.searchParams.append("z", "ü&="); url.port = "443"; url.hash = ""; url.pathname = "/p q";
console.log(String(url), JSON.stringify({ url }));
for (const bad of ["", "no scheme", "http://"]) { try { new URL(bad); } catch (e) { console.log(e.name, e.message, e.code); } }
console.log(URL.canParse("a:b"), URL.parse("x"), new URL("http://münchen.de/ä?ö").href);
const params = new URLSearchParams({ b: "2", a: "1" }); params.append("a", "3"); params.sort();
console.log(String(params), [...params], params.getAll("a"), params.size, params.has("b", "2"));
params.delete("a", "1"); params.set("b", "x y"); console.log(String(params), new URLSearchParams([["k", "v"]]), [...new URLSearchParams("?q=%E2%9C%93&q")]);

console.log(new TextEncoder().encode("aé€😀\ud800"), new TextEncoder().encodeInto("aé€", new Uint8Array(4)));
const utf8 = new TextDecoder(); const bytes = new TextEncoder().encode("\ufeffé€😀");
let text = ""; for (const b of bytes) text += utf8.decode(new Uint8Array([b]), { stream: true }); text += utf8.decode();
console.log(text, text.length, new TextDecoder().decode(new Uint8Array([0xff, 0x41])));
try { new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([0xff])); } catch (e) { console.log(e.name, e.message); }
try { new TextDecoder("shift_jis"); } catch (e) { console.log(e.name, e.message); }
console.log(btoa("hello"), atob("aGVsbG8="), atob(" aGk "), btoa(""), btoa("\xff\xfe"));
for (const act of [() => btoa("€"), () => atob("a"), () => atob("a*bc")]) { try { act(); } catch (e) { console.log(e.name, e.message); } }

const source = { date: new Date(0), map: new Map([[1, new Set([2])]]), re: /x/g, bytes: new Uint8Array([1]), nested: [1n] };
source.self = source;
const copy = structuredClone(source);
console.log(copy, copy.self === copy, copy.map !== source.map);
try { structuredClone(() => {}); } catch (e) { console.log(e.name, e instanceof DOMException, e.code); }
console.log(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), crypto.randomUUID() !== crypto.randomUUID());
console.log(crypto.getRandomValues(new Uint32Array(8)).some((n) => n > 0));
for (const bad of [new Float64Array(1), new Uint8Array(70000)]) { try { crypto.getRandomValues(bad); } catch (e) { console.log(e.name, e.message); } }

const controller = new AbortController();
controller.signal.addEventListener("abort", (event) => console.log(event.type, event.target === controller.signal, event.target.reason.name), { once: true });
controller.abort(); controller.abort();
try { controller.signal.throwIfAborted(); } catch (e) { console.log(String(e), e.name); }
console.log(AbortSignal.abort("why").reason, AbortSignal.any([AbortSignal.abort(1)]).aborted);
const waited = AbortSignal.timeout(5); await new Promise((resolve) => { waited.addEventListener("abort", resolve); setTimeout(() => {}, 50); });
console.log(waited.reason.name);
const target = new EventTarget(); const got = []; const listener = (e) => got.push(e.detail);
target.addEventListener("x", listener); target.addEventListener("x", listener); target.dispatchEvent(new CustomEvent("x", { detail: 7 }));
target.removeEventListener("x", listener); target.dispatchEvent(new CustomEvent("x")); console.log(got);

console.log(new Intl.DateTimeFormat("de-DE", { dateStyle: "full", timeStyle: "short" }).format(new Date(0)));
console.log((1234567.891).toLocaleString("de-DE"), new Intl.NumberFormat("en-IN").format(1e7), ["z", "ä", "a"].sort(new Intl.Collator("de").compare));
console.log(new Intl.PluralRules("en", { type: "ordinal" }).select(2), "İ".toLocaleLowerCase("tr"), Intl.DateTimeFormat().resolvedOptions().timeZone);
console.log(new Date(2026, 0, 1).getTimezoneOffset(), new Date(0).toString());
