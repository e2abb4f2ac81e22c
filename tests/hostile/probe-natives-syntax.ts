// expect: syntax
return %GetOptimizationStatus(() => 1);
