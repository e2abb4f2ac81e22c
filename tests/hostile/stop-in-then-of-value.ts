// expect: limit timeout
return { then(resolve: any) { resolve({ then() { for (;;); } }); } } as any;
