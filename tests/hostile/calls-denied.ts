// expect: denied
return await shut_echo({ n: 1 });
