// expect: limit memory or limit timeout
const zones = Intl.supportedValuesOf('timeZone');
const kept: unknown[] = [];
for (let i = 0; ; i++) kept.push(new Intl.DateTimeFormat('ar', { dateStyle: 'full', timeStyle: 'long', timeZone: zones[i % zones.length] }));
