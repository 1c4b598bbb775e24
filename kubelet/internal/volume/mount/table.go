package mount

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// table is the kernel's mount table, in order: a mount can only be on top of
// earlier ones.
type table []entry

type entry struct {
	point  string
	shared bool // mounts in it are propagated elsewhere
}

func readTable() (table, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	return parse(string(text)), nil
}

// parse parses mountinfo (proc(5)), and skips invalid lines.
func parse(text string) table {
	var t table
	for line := range strings.Lines(text) {
		// Only blanks separate: the kernel escapes those in paths, but none of Unicode's other spaces.
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(fields) < 7 {
			continue
		}
		optional := fields[6:] // up to a dash
		optional = optional[:max(0, slices.Index(optional, "-"))]
		t = append(t, entry{unescape(fields[4]), slices.ContainsFunc(optional, func(o string) bool { return strings.HasPrefix(o, "shared:") })})
	}
	return t
}

// below returns the mount points at and below dir, the newest first.
func (t table) below(dir string) []string {
	var points []string
	for _, e := range slices.Backward(t) {
		if e.point == dir || strings.HasPrefix(e.point, dir+"/") {
			points = append(points, e.point)
		}
	}
	return points
}

// mountOf is the mount point that path is below, and whether that mount is shared: of
// several on one point the last, which hides the others.
func (t table) mountOf(path string) (point string, shared bool) {
	for _, e := range t {
		inside := e.point == path || strings.HasPrefix(path, strings.TrimSuffix(e.point, "/")+"/")
		if inside && len(e.point) >= len(point) {
			point, shared = e.point, e.shared
		}
	}
	return point, shared
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
