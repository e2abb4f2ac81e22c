// expect: returned ["�","�a",{"�":"�"}]
return ['\ud800', '\udc00a', { '\udfff': '\ud83d' }];
