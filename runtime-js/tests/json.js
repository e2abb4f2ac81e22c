// Values that JSON and JavaScript do not have in common.
const show = (f) => {
  try {
    console.log(f());
  } catch (error) {
    console.log(`${error.name}: ${error.message}`);
  }
};
const tell = async (input) => {
  try {
    console.log(await echo(input));
  } catch (error) {
    console.log(`${error.constructor.name}: ${error.message}`);
  }
};

// Integers that a number cannot hold.
const ids = mcp.json(
  `{"id": 1234567890123456789, "n": [-9007199254740993, 18446744073709551616, ${"9".repeat(40)}],
    "safe": [9007199254740991, -9007199254740991, 0, -0], "not": [1e30, 0.1234567890123456789, 1e400, 12345678901234567890.5],
    "text": "1234567890123456789", "__proto__": 9007199254740992, "source": 1}`,
);
console.log(ids);
console.log(JSON.stringify({ id: ids.id, n: ids.n }), `${ids.id}`, ids.id === 1234567890123456789n);
Object.prototype.source = "7";
console.log(mcp.json("[1234567890123456789, 1e300, null]"));
delete Object.prototype.source;
await tell({ id: ids.id, deep: [{ n: ids.n }], boxed: Object(5n) });
console.log(JSON.stringify([1n, { a: 2n }], null, 1), JSON.stringify(3n, (_key, value) => typeof value));
delete BigInt.prototype.toJSON;
await tell({ id: ids.id });
BigInt.prototype.toJSON = () => "mine";
await tell({ id: 1n });

// Values that JSON would make less of.
class Empty { #secret = 1; }
function* steps() { yield 1; }
for (
  const value of [
    NaN, Infinity, -Infinity, new Number(NaN), new Map([[1, 2]]), new Set([1]), new WeakMap(), new WeakSet(), new Error("e"),
    new McpError("e"), echo({}), { __proto__: { then() {} } }, () => 1, Symbol("s"), /a/, new ArrayBuffer(1), new Uint8Array(1),
    new DataView(new ArrayBuffer(1)), steps(), [1].values(), new Map().keys(), new Empty(), new URLSearchParams("a=1"), new Date(NaN),
    new WeakRef({}), new Proxy(new Set(), {}),
  ]
) await tell({ value });
await tell({ record: { items: [1, 2, { "a b": [undefined] }] } });
await tell({ list: [1, , 3] });
await tell({ same: [{}, {}].fill({ x: 1 }), then: { a: [], b: NaN } });
await tell(new Map());
await tell({ toJSON: () => new Set() });
await tell({ ["k".repeat(300)]: { a: { b: NaN } } });
const cycle = {};
cycle.self = { cycle };
await tell(cycle);
await tell({ get x() { throw new RangeError("a getter"); } });

// Values that JSON has.
await tell({
  date: new Date(0), url: new URL("a:b"), own: { toJSON: () => 1 }, left: undefined, boxed: [new Number(1), new String(""), new Boolean(false)],
  nothing: { __proto__: null }, instance: new (class { x = 1; })(), raw: JSON.rawJSON("1.50"), symbol: { [Symbol("k")]: 1 },
});

return {
  bad: [NaN, -Infinity, undefined, new Map([[1, { a: 1 }]]), new Set([1]), new Error("no"), /a/, new URLSearchParams("a=1")],
  promise: Promise.resolve(1), f: () => 1, id: ids.id, date: new Date(NaN), left: undefined,
};
