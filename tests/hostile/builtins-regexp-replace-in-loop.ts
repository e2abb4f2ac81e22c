// expect: limit timeout
let text = 'a'.repeat(1000);
for (;;) text = text.replace(/(?:a|aa)+?$/g, (match) => match);
