// expect: returned "first"
return { then(resolve: any, reject: any) { resolve('first'); resolve('second'); reject(new Error('third')); throw new Error('fourth'); } } as any;
