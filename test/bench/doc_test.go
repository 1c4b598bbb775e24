// Package bench_test measures a whole cluster, and beside each figure, in the
// same run, its floor: what the runtime's own calls take, or etcd's own
// transactions. The machines that run it are shared and noisy, so ratios are
// what counts, and nothing here fails for being slow.
package bench_test
