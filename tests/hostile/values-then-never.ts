// expect: neverSettled
return { then() {} } as any;
