// expect: returned
const first = new AbortController(), second = new AbortController();
first.signal.addEventListener('abort', () => second.abort());
second.signal.addEventListener('abort', () => first.abort());
for (let i = 0; i < 1000; i++) first.signal.addEventListener('abort', () => first.abort(i));
first.abort();
