// expect: returned {"n":1}
// The text of the arguments is made once.
let reads = 0;
return await odd_echo({ get n() { return ++reads; } });
