// expect: threw RangeError or threw a value or returned
const target = new EventTarget();
target.addEventListener('x', () => target.dispatchEvent(new Event('x')));
target.dispatchEvent(new Event('x'));
