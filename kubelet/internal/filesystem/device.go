package filesystem

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
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
	mounts, err := os.ReadFile("/proc/self/mountinfo") // proc_pid_mountinfo(5)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(mounts)) {
		// Only blanks separate: the kernel escapes those in names, but none of Unicode's other spaces.
		mounted, source, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if fields, of := strings.Split(mounted, " "), strings.Split(source, " "); len(fields) > 2 && len(of) > 1 && fields[2] == number {
			return of[1]
		}
	}
	return ""
}
