// expect: returned "closed"
// A result is a value, and nothing in it is run.
const back: any = await odd_structured({ value: { then: 'x', catch: 1, finally: null } });
return back.then === 'x' ? 'closed' : 'open';
