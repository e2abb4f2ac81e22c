// expect: threw Error
const error = new Error('short');
error.stack = 'Error: short\n' + '    at FORGED (script.ts:1:1)\n'.repeat(1e5) + '\nCaused by: FORGED';
throw error;
