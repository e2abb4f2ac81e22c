// expect: returned "end" or threw RangeError
let proto: any = { last: 'end' };
for (let i = 0; i < 50_000; i++) proto = Object.create(proto);
return proto.last;
