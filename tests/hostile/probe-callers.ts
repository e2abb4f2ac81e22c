// expect: returned "closed"
const seen: any[] = [];
function own(this: any): any { try { seen.push((own as any).caller, (own as any).arguments, this); } catch (error) { seen.push(error instanceof TypeError); } return 1; }
[3, 2, 1].sort(own as any);
JSON.stringify({ toJSON: own });
Promise.resolve().then(own as any);
setTimeout(own, 0);
queueMicrotask(own as any);
await new Promise((done) => setTimeout(done, 5));
return seen.every((one) => one === true || one === undefined || one === globalThis || typeof one !== 'function') ? 'closed' : seen.map(String);
