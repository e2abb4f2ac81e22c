// expect: limit timeout
return /(?<=^(?:[a-z]+ ?)+-)!/.exec('1' + 'word'.repeat(20) + '-!');
