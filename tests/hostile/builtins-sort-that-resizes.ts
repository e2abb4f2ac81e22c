// expect: returned "ordered"
// The comparer empties the array that is being sorted.
const values = Array.from({ length: 1000 }, (_, i) => 1000 - i);
values.sort((a, b) => { values.length = 0; return a - b; });
return values.length === 1000 && values[0] === 1 ? 'ordered' : 'odd';
