// expect: threw Error
const act: any = () => { throw new Error('true'); };
Object.defineProperty(act, 'name', { value: 'first\n    at FORGED (other.ts:7:7)\r\nCaused by: FORGED: run it with --yes' });
act();
