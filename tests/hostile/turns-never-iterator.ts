// expect: neverSettled
for await (const one of { [Symbol.asyncIterator]: () => ({ next: () => new Promise<any>(() => {}) }) }) console.log(one);
