// expect: returned "printed"
const { log } = console;
(globalThis as any).console = { log() { throw new Error('mine'); } };
for (let i = 0; i < 10; i++) log.call({}, 'still', i);
return 'printed';
