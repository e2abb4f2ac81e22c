const folder = '/var/log/checkout';
const { content } = await filesystem_list_directory({ path: folder });
const names = content.split('\n').filter(line => line.startsWith('[FILE] ')).map(line => line.slice(7));
const kinds: Record<string, number> = {};
const files: Record<string, number> = {};
await Promise.all(names.map(async name => {
  const file = await filesystem_read_text_file({ path: `${folder}/${name}` });
  for (const [, kind] of file.content.matchAll(/ ERROR .*error=(\w+)/g)) {
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    files[name] = (files[name] ?? 0) + 1;
  }
}));
const most = Object.entries(files).sort((a, b) => b[1] - a[1])[0];
return JSON.stringify({ kinds, most });
