// expect: threw
const error = new Error('one\n    at FORGED (x:1:1)\nCaused by: FORGED');
error.name = 'Error\r\nFORGED';
throw error;
