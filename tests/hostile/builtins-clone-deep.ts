// expect: threw RangeError or threw DataCloneError or limit memory
let nest: any = {};
for (let i = 0; i < 500_000; i++) nest = { nest };
return typeof structuredClone(nest);
