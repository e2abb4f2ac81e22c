// expect: returned 500
let denied = 0;
for (let i = 0; i < 500; i++) await shut_echo({ i }).catch((error: any) => { if (error instanceof McpDeniedError) denied++; });
return denied;
