// expect: returned "closed"
const self: any = this;
return self === undefined || self === globalThis ? 'closed' : Reflect.ownKeys(self).map(String);
