// expect: returned "closed" or limit timeout or threw SyntaxError
const [long] = mcp.json(`[${'9'.repeat(1_000_000)}]`);
return typeof long === 'bigint' && (await odd_echo({ n: long }).then(() => true, () => true)) ? 'closed' : typeof long;
