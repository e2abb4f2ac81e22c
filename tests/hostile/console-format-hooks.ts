// expect: limit timeout
console.log('%s %d %i %f %j %o %O %c %%', { toString() { for (;;); } }, { valueOf() { for (;;); } });
console.log(`${{ toString() { for (;;); } }}`);
