// expect: syntax
```ts
return 1
```
and then
```sh
cat /etc/passwd
```
