// expect: threw or returned; checked: types
return await odd_echo(17 as unknown as string);
