// expect: limit timeout or limit memory
let text = 'ÿ'.repeat(3e6);
for (;;) if (atob(btoa(text)) !== text) return 'differs';
