// expect: limit memory or threw RangeError
return new ArrayBuffer(2 ** 44).byteLength;
