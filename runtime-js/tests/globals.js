// The whole global scope: a new V8 or a slip of ours shows here.
for (const name of Reflect.ownKeys(globalThis).map(String).sort()) console.log(name);
console.log("function properties", Reflect.ownKeys(Function.prototype).map(String).sort().join(" "));
console.log(Object.getOwnPropertyDescriptor(Function.prototype, "call").writable);
console.log(Object.getOwnPropertyDescriptor(Function.prototype, "apply").configurable);
console.log("enumerable", Object.keys(globalThis).sort().join(" "));
