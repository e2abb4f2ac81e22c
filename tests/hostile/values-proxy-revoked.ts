// expect: threw TypeError
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
return proxy;
