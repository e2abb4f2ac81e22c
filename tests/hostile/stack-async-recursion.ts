// expect: threw RangeError or limit memory
const again = async (n: number): Promise<number> => (await again(n + 1)) + 1;
return await again(0);
