// expect: limit timeout or limit memory
const words = new Intl.Segmenter('th', { granularity: 'word' });
for (;;) [...words.segment('สวัสดี'.repeat(50_000))];
