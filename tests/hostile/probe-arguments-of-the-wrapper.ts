// expect: types
return arguments.length + ' ' + arguments.callee;
