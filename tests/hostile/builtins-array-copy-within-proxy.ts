// expect: limit timeout
const holes = new Proxy({ length: 2 ** 50 }, { has: () => false, deleteProperty: () => true });
Array.prototype.copyWithin.call(holes as any, 0, 1);
