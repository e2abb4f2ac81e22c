// expect: syntax or limit timeout
// The time of a parser may double with each level.
return <any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(<any>(1))))))))))))))))))))))))))))));
