// expect: returned 200
let ended = 0;
for (let i = 0; i < 200; i++) { const controller = new AbortController(); const call = odd_echo({ i }, { signal: controller.signal }); controller.abort(); await call.catch(() => ended++); }
return ended;
