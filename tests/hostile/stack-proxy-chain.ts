// expect: threw RangeError
let chain: any = {};
for (let i = 0; i < 200_000; i++) chain = new Proxy(chain, {});
return chain.missing;
