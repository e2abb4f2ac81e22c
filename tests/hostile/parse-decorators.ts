// expect: syntax
@((target: any) => target) class Marked {}
return Marked;
