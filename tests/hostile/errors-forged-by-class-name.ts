// expect: threw Error
const Named: any = { ['C\u2028FORGED (other.ts:1:1)\nFORGED']: class { constructor() { this.act(); } act() { throw new Error('true'); } } };
for (const key in Named) new Named[key]();
