// expect: limit memory
// Weak references hold their targets to the end of the turn.
const kept: unknown[] = [];
for (let i = 0; ; i++) kept.push(new WeakRef({ i }));
