// expect: limit memory or threw RangeError
const list: any[] = new Array(2 ** 32 - 1);
for (let i = 0; ; i++) list[(i * 2654435761) % (2 ** 32 - 1)] = { i };
