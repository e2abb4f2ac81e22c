// expect: limit timeout or limit memory or returned
const target = new EventTarget();
const add = () => { target.addEventListener('x', () => add()); };
add();
for (let i = 0; i < 24; i++) target.dispatchEvent(new Event('x'));
