// expect: limit memory or threw RangeError
let text = 'seed';
for (const kept: string[] = []; ; ) { text += text.slice(0, 1 << 20) + kept.length; kept.push([...text.slice(-4096)].reverse().join('')); }
