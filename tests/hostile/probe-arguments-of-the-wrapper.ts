// expect: syntax
return arguments.length + ' ' + arguments.callee;
