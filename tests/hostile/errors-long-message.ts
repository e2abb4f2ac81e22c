// expect: threw Error or limit memory
const error = new Error('m'.repeat(2e7));
error.stack = 's'.repeat(2e7);
throw error;
