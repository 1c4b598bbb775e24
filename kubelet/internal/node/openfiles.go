package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// OpenFiles counts the open file descriptors of processes, and those of them that are sockets.
// Processes that have ended meanwhile have none. Who may not trace a process may not see what its
// descriptors are: then told is false, and sockets says nothing.
func OpenFiles(processes []int) (all, sockets uint64, told bool) {
	told = true
	for _, pid := range processes {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		all += uint64(len(entries))
		for _, e := range entries {
			to, err := os.Readlink(filepath.Join(dir, e.Name()))
			if errors.Is(err, fs.ErrPermission) {
				told = false
				break
			}
			if err == nil && strings.HasPrefix(to, "socket:") {
				sockets++
			}
		}
	}
	return all, sockets, told
}

// OpenFilesLimit is how many files a process may open, its soft limit: -1 without one. It is
// false for a process that has ended. Of others' processes only the file tells it to a kubelet
// without CAP_SYS_RESOURCE.
func OpenFilesLimit(pid int) (limit int64, known bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, false
	}
	_, rest, found := strings.Cut(string(text), "\nMax open files ")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, false
	}
	if fields[0] == "unlimited" {
		return -1, true
	}
	limit, err = strconv.ParseInt(fields[0], 10, 64)
	return limit, err == nil
}
