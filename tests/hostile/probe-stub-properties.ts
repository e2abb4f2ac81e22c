// expect: returned "closed"
const stub: any = odd_echo;
const open: string[] = [];
for (const key of Reflect.ownKeys(stub)) if (!['name', 'length'].includes(String(key))) open.push(String(key));
for (const act of [() => { stub.call = 1; if (stub.call === 1 && (shut_echo as any).call === 1) open.push('shared'); }, () => String(stub).includes('native') || String(stub).length < 200 || open.push('text'), () => new stub({}), () => stub.prototype && open.push('prototype')]) try { act(); } catch { /* closed */ }
return open.length === 0 ? 'closed' : open;
