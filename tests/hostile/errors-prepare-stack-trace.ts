// expect: returned "closed"
// Call sites would lead to functions and receivers of others.
let got = 'closed';
(Error as any).prepareStackTrace = (_: unknown, sites: any[]) => { got = 'call sites: ' + typeof sites?.[0]?.getFunction; return sites; };
const target: any = {};
Error.captureStackTrace(target);
void target.stack;
for (const act of [() => void new Error('x').stack, () => void structuredClone(() => 1), () => JSON.parse('{'), () => new URL('?')]) try { act(); } catch (error: any) { if (typeof error.stack !== 'string') got = 'no text'; }
return got;
