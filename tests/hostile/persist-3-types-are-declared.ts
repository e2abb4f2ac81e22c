// expect: returned "declared"
declare global { interface Array<T> { left: T } interface LeftByOne { n: number } var leftVariable: number; }
interface LeftByOne { own: 1 }
type Tool = typeof odd_echo;
const made: LeftByOne = { own: 1 };
return made.own === 1 ? 'declared' : (null as any as Tool);
