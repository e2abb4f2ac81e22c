// expect: threw Error
throw new Error('outer', { cause: Object.assign(new Error('a\nFORGED: b'), { name: 'Odd\nCaused by: FORGED\nFORGED' }) });
