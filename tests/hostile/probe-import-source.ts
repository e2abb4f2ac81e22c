// expect: syntax
import source module from 'data:application/wasm,';
return typeof module;
