// expect: returned nothing or returned; checked: types or unchecked or limit timeout
type Hex = '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9' | 'a' | 'b' | 'c' | 'd' | 'e' | 'f';
type Four = `${Hex}${Hex}${Hex}${Hex}`;
type Pairs<T extends string> = { [K in Four as `${K}-${T}`]: [K, T] };
const first: Pairs<Hex> = null as any;
const second: Pairs<'x' | 'y' | 'z'> = first as any;
const third: { [K in keyof Pairs<Hex>]: Pairs<'q'>[keyof Pairs<'q'>] } = second as any;
return void [first, second, third];
