// Package bench_test measures a whole cluster, each figure beside its floor in
// the same run: what the runtime's own calls take, what etcd's own transactions
// take. The machines that run it are shared and noisy, so ratios are what
// counts, and nothing here fails for being slow.
package bench_test
