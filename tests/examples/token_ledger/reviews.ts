const [pulls, users] = (await Promise.all([
  github_list_pull_requests({
    owner: 'acme', repo: 'checkout', state: 'open', perPage: 100,
    fields: ['number', 'title', 'draft', 'requested_reviewers'],
  }),
  slack_get_users({ limit: 200 }),
])).map(text => mcp.json<any>(text));
const ids = new Map<string, string>(users.members.map((one: any) => [one.profile.display_name, one.id]));
const lines = new Map<string, string[]>();
for (const pull of pulls.filter((one: any) => !one.draft)) {
  for (const login of pull.requested_reviewers) {
    lines.set(login, [...(lines.get(login) ?? []), `#${pull.number} ${pull.title}`]);
  }
}
const unknown = [...lines.keys()].filter(login => !ids.has(login));
const posts = [...lines].filter(([login]) => ids.has(login)).map(([login, own]) => slack_post_message({
  channel_id: ids.get(login)!, text: `Waiting for your review:\n${own.join('\n')}`,
}));
return JSON.stringify({ sent: (await Promise.all(posts)).length, unknown });
