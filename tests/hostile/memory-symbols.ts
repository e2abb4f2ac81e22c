// expect: limit memory
for (let i = 0; ; i++) Symbol.for('name number ' + i + ' of a list that is never let go');
