// expect: syntax
return import.meta.url;
