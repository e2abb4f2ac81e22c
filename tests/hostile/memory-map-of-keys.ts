// expect: limit memory or threw RangeError
const map = new Map<unknown, unknown>();
for (let i = 0; ; i++) map.set({ i }, [i]);
