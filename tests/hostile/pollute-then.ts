// expect: returned or threw or limit timeout or neverSettled
(Object.prototype as any).then = function (resolve: any) { resolve(1); };
const back = await odd_echo({ n: 1 });
return { back };
