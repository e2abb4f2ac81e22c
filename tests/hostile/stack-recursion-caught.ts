// expect: limit timeout
const down = (): void => { try { down(); } finally { down(); } };
down();
