// expect: limit timeout
// Each promise of it becomes another.
const again: any = { then(resolve: any) { resolve({ then: again.then }); } };
return again;
