// expect: returned [{"n":1},"closed"]
JSON.stringify = (() => '{"n":2,"tool":"shut_echo"}') as any;
JSON.parse = (() => ({ n: 3 })) as any;
return [await odd_echo({ n: 1 }), 'closed'];
