package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPressure(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"cpu.pressure": "some avg10=97.82 avg60=94.49 avg300=53.39 total=14958125046\nfull avg10=0.00 avg60=1.00 avg300=0.00 total=7\n",
		"io.pressure":  "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
	})
	p, err := pressureIn(dir, ".pressure")
	if err != nil || p.Memory != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	want := cgroups.PSIStats{Some: cgroups.PSIData{Avg10: 97.82, Avg60: 94.49, Avg300: 53.39, Total: 14958125046}, Full: cgroups.PSIData{Avg60: 1, Total: 7}}
	if *p.CPU != want || p.IO.Some.Total != 3 {
		t.Errorf("%+v %+v, want %+v", p.CPU, p.IO, want)
	}
	write(t, dir, map[string]string{"memory.pressure": "some avg10=much\n"})
	if p, err := pressureIn(dir, ".pressure"); err == nil {
		t.Errorf("nonsense is %+v", p)
	}
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		t.Skip(err)
	}
	machine, err := MachinePressure()
	if err != nil || machine.CPU.Some.Total == 0 || machine.CPU.Some.Total > uint64(10*365*24*time.Hour/time.Microsecond) {
		t.Errorf("the machine's: %+v, %v", machine.CPU, err)
	}
}

func TestIO(t *testing.T) {
	want := map[string]DeviceIO{"999:0": {"999:0", 1, 4096, 2, 8192}, "999:16": {"999:16", 3, 0, 0, 0}}
	for unified, files := range map[bool]map[string]string{
		true: {"io.stat": "999:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n999:16 rios=3\n999:32 \n"},
		false: {
			"blkio.throttle.io_serviced_recursive": "999:0 Read 1\n999:0 Write 2\n999:0 Sync 3\n999:0 Async 0\n999:0 Discard 0\n999:0 Total " +
				"3\n999:16 Read 3\nTotal 6\n",
			"blkio.throttle.io_service_bytes_recursive": "999:0 Read 4096\n999:0 Write 8192\n999:0 Total 12288\nTotal 12288\n",
		},
	} {
		dir := t.TempDir()
		write(t, dir, files)
		got, err := ioOf(dir, unified)
		if err != nil || len(got) != 2 || got["999:0"] != want["999:0"] || got["999:16"] != want["999:16"] {
			t.Errorf("unified %v: %+v, %v, want %+v", unified, got, err, want)
		}
	}
}
