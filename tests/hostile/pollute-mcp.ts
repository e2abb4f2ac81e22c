// expect: returned "closed"
const before = mcp.callTool;
for (const act of [() => { (mcp as any).callTool = () => 'mine'; }, () => Object.defineProperty(mcp, 'callTool', { value: 1 }), () => Object.setPrototypeOf(mcp, {}), () => { delete (mcp as any).emit; }, () => { (mcp as any).other = 1; }]) try { act(); } catch { /* closed */ }
return mcp.callTool === before && typeof mcp.emit === 'function' && !('other' in mcp) ? 'closed' : 'open';
