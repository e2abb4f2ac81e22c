// expect: threw a value
throw undefined;
