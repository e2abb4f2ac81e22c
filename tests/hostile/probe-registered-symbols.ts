// expect: returned "closed"
for (const name of ['Deno.core', 'Deno.core.hostObject', 'Deno.core.internalPromiseId', 'Deno.internal', 'Deno.privateCustomInspect', 'Deno.customInspect', 'nodejs.util.inspect.custom', 'callgate', 'callgate.show', 'callgate.core']) {
  const symbol = Symbol.for(name);
  for (const holder of [globalThis, Object.prototype, Function.prototype, Promise.prototype, Promise.resolve(), Error.prototype, mcp, odd_echo, console, URL.prototype, AbortSignal.prototype] as any[]) if (symbol in holder) return name + ' of ' + String(holder);
}
return 'closed';
