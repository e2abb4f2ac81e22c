// expect: returned "unread"
/// <reference path="/etc/passwd" />
/// <reference path="../../callgate.json" />
// @ts-check
/* @jsxImportSource /etc */
return 'unread';
