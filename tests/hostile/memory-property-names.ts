// expect: limit memory or threw RangeError
const object: any = {};
for (let i = 0; ; i++) object['a' + i.toString(36).repeat(10)] = i;
