package cgroup

import (
	"reflect"
	"testing"

	"github.com/opencontainers/cgroups"
)

// Both versions tell the same in files of other names; a machine has only one of them.
func TestDetailsOfBothVersions(t *testing.T) {
	cgroups.TestMode = true // else only files on a cgroup file system are read
	defer func() { cgroups.TestMode = false }()
	for version, c := range map[string]struct {
		read  func(d *Details, at func(string) string, stat map[string]uint64) error
		names files
		files map[string]string
		want  Details
		swap  uint64
	}{
		"v2": {(*Details).readUnified, filesOfV2, map[string]string{
			"cpu.stat":   "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 3\nnr_throttled 2\nthrottled_usec 7\nnr_bursts 6\nburst_usec 8\n",
			"cpu.weight": "39\n", "cpu.max": "25000 100000\n",
			"memory.stat": "anon 1\nfile 11\nfile_mapped 12\nactive_file 13\ninactive_file 14\nfile_dirty 15\nfile_writeback 16\nkernel 17\npgscan 18\npgsteal " +
				"19\nworkingset_refault_anon 20\nworkingset_refault_file 21\n",
			"memory.events": "low 0\nhigh 22\nmax 23\noom 1\noom_kill 24\n", "memory.swap.current": "25\n", "memory.peak": "26\n", "memory.min": "27\n",
			"memory.swap.max": "max\n",
		}, Details{
			CPU: CPUDetails{
				User: 5000, System: 4000, Periods: 3, Throttled: 2, ThrottledTime: 7000, Bursts: 6, BurstTime: 8000, Shares: 998, Quota: 25000,
				Period: 100000,
			},
			Memory: MemoryDetails{
				Cache: 11, Mapped: 12, ActiveFile: 13, InactiveFile: 14, Dirty: 15, Writeback: 16, Kernel: 17, Peak: 26, Reservation: 27,
				AtLimit: 23, AtHigh: 22, Killed: 24, PagesScanned: 18, PagesFreed: 19, RefaultsFile: 21, RefaultsAnonymous: 20,
			},
		}, 25},
		"v2 without limits, an older kernel": {(*Details).readUnified, filesOfV2, map[string]string{
			"cpu.stat": "usage_usec 9\nuser_usec 5\nsystem_usec 4\n", "cpu.max": "max 100000\n", "memory.stat": "file 11\n", "memory.events": "max 0\n",
		}, Details{CPU: CPUDetails{User: 5000, System: 4000, Period: 100000}, Memory: MemoryDetails{Cache: 11}}, 0},
		"v1": {(*Details).readV1, filesOfV1, map[string]string{
			"cpu.stat": "nr_periods 3\nnr_throttled 2\nthrottled_time 7\nnr_bursts 6\nburst_time 8\n", "cpu.shares": "102\n", "cpu.cfs_quota_us": "-1\n",
			"cpu.cfs_period_us":  "100000\n",
			"cpuacct.stat":       "user 5\nsystem 4\n",
			"memory.stat":        "cache 1\ntotal_cache 11\ntotal_mapped_file 12\ntotal_active_file 13\ntotal_inactive_file 14\ntotal_swap 25\n",
			"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 24\n", "memory.failcnt": "23\n", "memory.kmem.usage_in_bytes": "17\n",
			"memory.max_usage_in_bytes":  "26\n",
			"memory.soft_limit_in_bytes": "9223372036854771712\n", "memory.memsw.limit_in_bytes": "28\n",
		}, Details{
			CPU:    CPUDetails{User: 5 * tick, System: 4 * tick, Periods: 3, Throttled: 2, ThrottledTime: 7, Bursts: 6, BurstTime: 8, Shares: 102, Period: 100000},
			Memory: MemoryDetails{Cache: 11, Mapped: 12, ActiveFile: 13, InactiveFile: 14, Kernel: 17, Peak: 26, SwapLimit: 28, AtLimit: 23, Killed: 24},
		}, 25},
	} {
		dir := t.TempDir()
		write(t, dir, c.files)
		stat, err := keyed(dir, "memory.stat")
		if err != nil {
			t.Fatal(err)
		}
		var got Details
		if err := c.read(&got, func(string) string { return dir }, stat); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if swap := c.names.swapOf(dir, stat); swap != c.swap {
			t.Errorf("%s: %d bytes of swap, want %d", version, swap, c.swap)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", version, got, c.want)
		}
	}
}
