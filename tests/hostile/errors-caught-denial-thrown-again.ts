// expect: threw Other
try { await shut_echo({}); } catch (error: any) { error.name = 'Other'; error.message = 'nothing was denied'; throw error; }
