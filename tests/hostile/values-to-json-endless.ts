// expect: limit timeout
return { toJSON(): never { for (;;); } };
