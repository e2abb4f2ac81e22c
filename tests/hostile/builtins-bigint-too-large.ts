// expect: threw RangeError
return (1n << (1n << 62n)).toString().length;
