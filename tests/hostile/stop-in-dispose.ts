// expect: limit timeout
using held: Disposable = { [Symbol.dispose]() { for (;;); } };
return 1;
