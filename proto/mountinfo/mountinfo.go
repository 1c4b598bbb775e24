// Package mountinfo reads the kernel's mount table, /proc/self/mountinfo
// (proc_pid_mountinfo(5)): what is mounted where, and whether mounts in it are
// propagated elsewhere.
//
// It is the programs' only reader of that table, and mounts nothing.
package mountinfo

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Table is a mount table, in the kernel's order: a mount can only be on top of
// earlier ones.
type Table []Mount

// Mount is one line of the table.
type Mount struct {
	ID     string
	Parent string // the ID of the mount that the point is in
	Device string // "major:minor", as in /sys/dev/block
	Root   string // the path within the file system that is seen at the point
	Point  string
	Source string // a device, or what the file system has instead: "tmpfs", "none", …
	Shared bool   // mounts in it are propagated elsewhere
}

// Read reads the table as it is now, for this process's mount namespace.
func Read() (Table, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	return parse(string(text)), nil
}

// parse skips invalid lines.
func parse(text string) Table {
	var t Table
	for line := range strings.Lines(text) {
		// Only blanks separate: the kernel escapes those in names, but none of Unicode's other spaces.
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(fields) < 7 {
			continue
		}
		// Any number of optional fields, a dash, the file system's type, the source, and options.
		dash := slices.Index(fields[6:], "-")
		if dash < 0 || len(fields) < 6+dash+3 {
			continue
		}
		t = append(t, Mount{
			ID: fields[0], Parent: fields[1], Device: fields[2], Root: unescape(fields[3]), Point: unescape(fields[4]),
			Source: unescape(fields[6+dash+2]),
			Shared: slices.ContainsFunc(fields[6:6+dash], func(o string) bool { return strings.HasPrefix(o, "shared:") }),
		})
	}
	return t
}

// Below returns the mount points at and below dir, the newest first. It compares
// paths as they are, without following links.
func (t Table) Below(dir string) []string {
	var points []string
	for _, m := range slices.Backward(t) {
		if isAtOrBelow(m.Point, dir) {
			points = append(points, m.Point)
		}
	}
	return points
}

// Of returns the mount that path is in: of several on one point the last, which
// hides the others. It is the zero Mount if the table has none.
func (t Table) Of(path string) Mount {
	var found Mount
	for _, m := range t {
		if isAtOrBelow(path, m.Point) && len(m.Point) >= len(found.Point) {
			found = m
		}
	}
	return found
}

// SourceOf returns what is mounted from a device ("major:minor"); empty if nothing is.
func (t Table) SourceOf(device string) string {
	i := slices.IndexFunc(t, func(m Mount) bool { return m.Device == device })
	if i < 0 {
		return ""
	}
	return t[i].Source
}

func isAtOrBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// unescape reads the octal escapes (space, tab, newline, backslash) of the
// mount table.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
