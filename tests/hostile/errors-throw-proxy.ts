// expect: threw a value or threw RangeError or threw TypeError
const walls: any = new Proxy({}, { get() { throw walls; }, getPrototypeOf() { throw walls; }, ownKeys() { throw walls; } });
throw walls;
