// expect: returned {"sent":{"n":1}}
// What is sent is what the ledger has, whatever a hook makes of it.
(Object.prototype as any).toJSON = function () { return { n: 1 }; };
const sent = await odd_echo({ n: 2, secret: 'x' });
delete (Object.prototype as any).toJSON;
return { sent };
