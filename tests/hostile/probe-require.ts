// expect: syntax
return require('child_process').execSync('id').toString();
