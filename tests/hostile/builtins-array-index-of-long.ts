// expect: limit timeout
// V8 does not look for a stop while it walks this length.
return Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 'absent');
