// expect: limit timeout
try { throw new Error('first'); } finally { for (;;); }
