// expect: returned "closed"
const names = ['$serde_json::private::Number', '$serde_json::private::RawValue', '__proto__', '__callgate', 'constructor'];
for (const name of names) {
  const back: any = await odd_echo(JSON.parse(`{"a":{"${name}":"1e5,\\"b\\":2"}}`)).catch((error: any) => error);
  if (back instanceof Error) continue;
  if (JSON.stringify(back.a) !== `{"${name}":"1e5,\\"b\\":2"}`) return [name, back];
}
return 'closed';
