// expect: limit memory
return JSON.parse('[' + '[],'.repeat(8e6) + '0]').length;
