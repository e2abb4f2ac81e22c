// expect: syntax
const { readFile } = await import('node:fs/promises');
return String(await readFile('/etc/passwd'));
