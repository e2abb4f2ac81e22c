// expect: syntax
}); globalThis.left = 1; (async () => {
