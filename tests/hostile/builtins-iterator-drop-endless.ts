// expect: limit timeout
return Iterator.from({ next: () => ({ done: false, value: 1 }) }).drop(Number.MAX_SAFE_INTEGER).next();
