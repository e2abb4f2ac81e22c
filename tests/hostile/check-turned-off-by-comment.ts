// expect: returned "closed"; checked: returned "closed" or types
// @ts-nocheck
const wrong: number = 'text' as any;
return typeof wrong === 'string' ? 'closed' : 'open';
