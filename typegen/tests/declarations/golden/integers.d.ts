declare function s_arguments(input?: {
 /** integer */ id?: number | bigint;
 /** integer, ≥ 0 */ from?: number | bigint;
 /** integer, 1–100 */ page?: number;
 /** integer */ below?: number;
 /** integer */ any?: number | bigint;
 /** integer, int64 */ long?: number | bigint;
 /** integer, int32 */ short?: number;
 /** each integer */ list?: (number | bigint)[];
 /** integer */ nullable?: number | bigint | null;
 float?: number;
 both?: number;
 /** integer integer */ choice?: bigint | number | string;
 /** integer */ all?: number | bigint;
 constant?: number | bigint;
}, options?: CallOptions): Promise<unknown>;
declare function s_results(input?: { [key: string]: unknown }, options?: CallOptions): Promise<{
 id: number;
 /** ≥ 0 */ count: number;
 /** int64 */ long: number | bigint;
 /** uint64, ≥ 0 */ unsigned?: number | bigint | null;
 /** int64, ≤ 100 */ short?: number;
 low?: number | bigint;
 high?: number | bigint;
 /** each uint64 */ list?: (number | bigint)[];
 /** int64 */ float?: number;
}>;
