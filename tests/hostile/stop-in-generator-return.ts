// expect: limit timeout
function* held() { try { yield 1; } finally { for (;;); } }
for (const one of held()) return one;
