// expect: limit timeout
const controller = new AbortController();
controller.signal.onabort = () => { for (;;); };
controller.abort();
