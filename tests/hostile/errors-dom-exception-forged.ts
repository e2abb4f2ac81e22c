// expect: returned "closed"
const bare = Object.create(DOMException.prototype);
try { return [bare.name, bare.code, String(bare)].join().length < 200 ? 'closed' : 'open'; } catch (error) { return error instanceof TypeError ? 'closed' : 'open'; }
