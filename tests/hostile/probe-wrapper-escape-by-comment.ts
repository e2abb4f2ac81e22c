// expect: returned 1 or syntax
return 1 /* }); globalThis.left = 1; (async () => { /*
*/
//# sourceMappingURL=data:application/json,{"version":3,"sources":["/etc/passwd"],"mappings":"AAAA"}
//# sourceURL=ext:core/01_core.js
