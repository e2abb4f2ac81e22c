// expect: returned
let any = AbortSignal.any([]);
for (let i = 0; i < 3000; i++) any = AbortSignal.any([any, new AbortController().signal, AbortSignal.timeout(1e6)]);
