// expect: threw ReferenceError; checked: types or unchecked or limit timeout
const f: any = null, T = 1;
return f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<f(a<b<1>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c))>(c));
