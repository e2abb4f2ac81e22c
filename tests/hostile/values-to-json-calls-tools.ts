// expect: returned
const value = { n: 0, toJSON() { odd_echo({ n: ++this.n }); return this.n < 5 ? { again: this.n } : null; } };
return [value, value, value];
