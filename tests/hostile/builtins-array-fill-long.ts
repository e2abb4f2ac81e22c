// expect: limit timeout or limit memory
Array.prototype.fill.call({ length: 2 ** 53 - 1 } as any, 'x');
