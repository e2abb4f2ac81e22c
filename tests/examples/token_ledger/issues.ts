const counts: Record<string, number> = {};
let oldest: any;
let after: string | undefined;
do {
  const page = mcp.json<any>(await github_list_issues({
    owner: 'acme', repo: 'checkout', state: 'OPEN', perPage: 100,
    fields: ['number', 'title', 'labels', 'updated_at'], ...(after ? { after } : {}),
  }));
  for (const issue of page.issues) {
    if (issue.updated_at >= '2026-06-01') continue;
    for (const label of issue.labels) counts[label] = (counts[label] ?? 0) + 1;
    if (!oldest || issue.updated_at < oldest.updated_at) oldest = issue;
  }
  after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : undefined;
} while (after);
return JSON.stringify({ counts, oldest });
