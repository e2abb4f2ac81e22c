// expect: returned "closed"
const back: any = await odd_structured({ value: JSON.parse('{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}},"toString":1}') });
return back.isAdmin === undefined && ({} as any).isAdmin === undefined && Object.hasOwn(back, '__proto__') ? 'closed' : 'open';
