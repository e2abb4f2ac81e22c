// expect: returned "closed"
const cycle: any = {}; cycle.cycle = cycle;
const wrong: any[] = [1n, { n: new Map() }, cycle, [], 'text', null, Symbol(), () => 1, new Proxy({}, { ownKeys() { throw new TypeError('mine'); } }), { toJSON: () => [] }, { toJSON: () => undefined }, { get a() { throw new TypeError('mine'); } }];
const got = await Promise.all(wrong.map((input) => (async () => odd_echo(input))().then(() => 'called', (error) => error.name)));
return got.every((one) => one === 'TypeError') ? 'closed' : got;
