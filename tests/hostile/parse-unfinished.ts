// expect: syntax
return `${`${`${'unfinished
