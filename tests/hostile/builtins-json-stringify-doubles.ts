// expect: limit memory or limit timeout or threw RangeError
let node: any = { text: 'x'.repeat(100) };
for (let i = 0; i < 40; i++) node = { left: node, right: node };
return JSON.stringify(node).length;
