// expect: returned 1; checked: types or unchecked
type Grow<T extends unknown[]> = T['length'] extends 5000 ? T : Grow<[...T, T]>;
type Count<N, T extends unknown[] = []> = T['length'] extends N ? T : Count<N, [0, ...T]>;
const grown: Grow<[]> = 1 as any;
const counted: Count<99999> = grown as any;
return counted as any;
