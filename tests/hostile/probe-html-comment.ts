// expect: syntax
<!-- return 1
--> return 2
