// expect: syntax or types or returned "unread"; checked: syntax or types or returned "unread"
/// <reference path="/etc/passwd" />
/// <reference types="../../../../etc/hosts" />
/// <reference lib="dom" />
type Passwd = typeof import('/etc/passwd');
return 'unread';
