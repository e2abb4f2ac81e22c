// expect: returned 1; checked: types or unchecked or returned 1 or limit timeout
interface A<T> { next: B<A<T>>; both: [A<B<T>>, B<A<T[]>>]; f(x: A<[T]>): B<[T, T]> }
interface B<T> { next: A<B<T>>; both: [B<A<T>>, A<B<[T]>>]; f(x: B<T[]>): A<[T, T, T]> }
interface C<T> { next: D<C<T>>; both: [C<D<T>>, D<C<T[]>>]; f(x: C<[T]>): D<[T, T]> }
interface D<T> { next: C<D<T>>; both: [D<C<T>>, C<D<[T]>>]; f(x: D<T[]>): C<[T, T, T]> }
declare let a: A<number>, b: B<string>, c: C<number>, d: D<string>;
const test = () => { a = c; c = a; b = d; d = b; (a as any as D<A<B<number>>>) satisfies B<C<D<number>>>; };
void test;
return 1;
