// expect: limit memory or threw RangeError
return new Set((function* () { for (let i = 0; ; i++) yield { i }; })()).size;
