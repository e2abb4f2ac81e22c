// expect: limit timeout
structuredClone({ get endless() { for (;;) if (Date.now() < 0) return 1; } });
