// expect: returned 4
let refused = 0;
for (const act of [
  () => new Intl.NumberFormat('x'.repeat(1e6)),
  () => new Intl.DateTimeFormat('en', { timeZone: '../../etc/passwd' }),
  () => new Intl.Locale('en-u-' + 'ca-'.repeat(1e5)),
  () => Intl.getCanonicalLocales('\u0000'),
]) try { act(); } catch (error) { if (error instanceof RangeError) refused++; }
return refused;
