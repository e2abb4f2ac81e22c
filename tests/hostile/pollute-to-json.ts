// expect: returned {"sent":{"n":1}}
// The server gets the same arguments as the ledger, even if a `toJSON` hook changes them.
(Object.prototype as any).toJSON = function () { return { n: 1 }; };
const sent = await odd_echo({ n: 2, secret: 'x' });
delete (Object.prototype as any).toJSON;
return { sent };
