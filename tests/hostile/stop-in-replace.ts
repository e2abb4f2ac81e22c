// expect: limit timeout
'abc'.replace(/./g, () => { for (;;); });
