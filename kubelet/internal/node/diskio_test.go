package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatADiskHasDoneIsRead(t *testing.T) {
	table := filepath.Join(t.TempDir(), "diskstats")
	const text = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n" +
		" 254       0 vda 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27\n" +
		" 254       1 vda1 1 2 3\n"
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := DiskIO{
		Reads: 11, ReadsMerged: 12, SectorsRead: 13, ReadTime: 14e6, Writes: 15, WritesMerged: 16, SectorsWritten: 17, WriteTime: 18e6,
		InProgress: 19, Busy: 20e6, WeightedBusy: 21e6,
	}
	if got := diskIO(table, "/dev/vda"); got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, without := range []string{"/dev/vda1", "/dev/vdb", "vda", "tmpfs", ""} {
		if got := diskIO(table, without); got != nil {
			t.Errorf("%q has %+v", without, *got)
		}
	}
	if got := diskIO(filepath.Join(t.TempDir(), "none"), "/dev/vda"); got != nil {
		t.Errorf("without the table there is %+v", *got)
	}
}
