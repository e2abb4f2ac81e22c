// expect: returned "closed"
const sent: any = JSON.parse('{"__proto__": {"evil": 1}, "constructor": {"prototype": {"evil": 1}}, "then": 1}');
const back: any = await odd_echo(sent);
return back.evil === undefined && ({} as any).evil === undefined && Object.getPrototypeOf(back) === Object.prototype && back.then === 1 ? 'closed' : 'changed';
