// expect: returned
const list: any = [1, 2, 3];
Object.defineProperty(list, 0, { enumerable: true, get() { list.length = 1; for (let i = 0; i < 1e5; i++) list[i + 1] = list; list.length = 2; list[1] = 0; return 'read'; } });
return list;
