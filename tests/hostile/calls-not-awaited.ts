// expect: returned "early"
// They are made to their end all the same.
for (let n = 0; n < 50; n++) odd_echo({ n });
return 'early';
