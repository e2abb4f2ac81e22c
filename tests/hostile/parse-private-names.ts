// expect: threw SyntaxError; checked: types
class Own { #a = 1; static has(other: any) { return #b in other; } }
return Own.has({});
