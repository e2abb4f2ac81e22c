// expect: threw ReferenceError; checked: types
return require('child_process').execSync('id').toString();
