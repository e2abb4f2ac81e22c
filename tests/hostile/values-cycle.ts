// expect: returned
const value: any = { big: 10n, map: new Map() };
value.self = value;
value.map.set(value, value);
return value;
