// expect: returned "user"
const level = 'user';
if (level === 'user') /*‮ } ⁦if (isAdmin)⁩ ⁦ begin admins only */ return level;
return 'admin';
