// expect: returned "closed"
const got = await Promise.allSettled([big_blob({ bytes: 20e6 }), big_blob({ bytes: 20e6 }), big_rows({ bytes: 1e6 })]);
return got.every((one) => one.status === 'fulfilled' || one.reason instanceof McpError) ? 'closed' : got;
