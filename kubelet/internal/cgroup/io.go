package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// DeviceIO is what a group has read from and written to a block device.
type DeviceIO struct {
	Number                               string // major:minor
	Reads, ReadBytes, Writes, WriteBytes uint64
}

// ioOf reads a group's I/O in either version, by the devices' names.
func ioOf(dir string, unified bool) (map[string]DeviceIO, error) {
	of := map[string]DeviceIO{}
	add := func(device, what, value string) {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return
		}
		now := of[device]
		if to, known := map[string]*uint64{"rios": &now.Reads, "rbytes": &now.ReadBytes, "wios": &now.Writes,
			"wbytes": &now.WriteBytes}[what]; known {
			*to = n
			of[device] = now
		}
	}
	var failed []error
	lines := func(file string, each func(fields []string)) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without the controller
			failed = append(failed, err)
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 1 {
				each(fields)
			}
		}
	}
	if unified {
		lines("io.stat", func(fields []string) {
			for _, figure := range fields[1:] {
				what, value, _ := strings.Cut(figure, "=")
				add(fields[0], what, value)
			}
		})
	} else {
		for _, file := range []struct{ name, unit string }{{"blkio.throttle.io_serviced_recursive", "ios"},
			{"blkio.throttle.io_service_bytes_recursive", "bytes"}} {
			lines(file.name, func(fields []string) {
				if len(fields) == 3 {
					add(fields[0], strings.ToLower(fields[1][:1])+file.unit, fields[2])
				}
			})
		}
	}
	return named(of), errors.Join(failed...)
}

// named replaces devices' numbers by their names, as in /dev.
func named(of map[string]DeviceIO) map[string]DeviceIO {
	all := map[string]DeviceIO{}
	for name, used := range of {
		used.Number = name
		if link, err := os.Readlink("/sys/dev/block/" + name); err == nil {
			name = "/dev/" + filepath.Base(link)
		}
		all[name] = used
	}
	return all
}
