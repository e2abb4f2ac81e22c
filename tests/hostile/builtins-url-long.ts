// expect: limit timeout or limit memory or returned
let url = new URL('http://host/');
for (let i = 0; i < 1e9; i++) { url = new URL('../'.repeat(200_000) + '%zz'.repeat(1000) + '?q#' + i, url.href.slice(0, 5000)); url.search = 'a=&'.repeat(20_000); url.searchParams.sort(); }
