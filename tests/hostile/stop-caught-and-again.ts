// expect: limit timeout
for (;;) try { for (;;); } catch { continue; } finally { for (;;); }
