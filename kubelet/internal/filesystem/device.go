package filesystem

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kctl/proto/mountinfo"
)

// Device returns the device that holds a directory, or what is mounted there if
// that is no device; empty if it can't be determined.
func Device(dir string) string {
	var is unix.Stat_t
	if unix.Stat(dir, &is) != nil {
		return ""
	}
	number := fmt.Sprintf("%d:%d", unix.Major(is.Dev), unix.Minor(is.Dev))
	if link, err := os.Readlink("/sys/dev/block/" + number); err == nil {
		return "/dev/" + filepath.Base(link)
	}
	table, err := mountinfo.Read()
	if err != nil {
		return ""
	}
	return table.SourceOf(number)
}
