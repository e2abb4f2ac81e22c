// expect: syntax or returned nothing
return new.target;
