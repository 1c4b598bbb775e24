package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programDirs are the directories in which programs mount, and what they call the places where they
// do. A user may have made a link of one, to another disk: there, what has another name is not theirs.
var programDirs = map[string][]string{
	"containerd": {"io.containerd.", "tmpmounts/"},
	"kubelet":    {"pods/", "plugins/", "checkpoints/"},
	"run":        {"containerd/"},
}

// link is one of programDirs that leads elsewhere.
type link struct{ name, to string }

// linked are those of programDirs that are links.
func (l Layout) linked() []link {
	var out []link
	for name := range programDirs {
		if info, err := os.Lstat(l.path(name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		if real, err := filepath.EvalSymlinks(l.path(name)); err == nil {
			out = append(out, link{name, real})
		}
	}
	return out
}

// throughLink is the path in the directory of a place that a link leads to; "" where programs don't mount.
func throughLink(links []link, point string) string {
	for _, l := range links {
		if point == l.to {
			return l.name
		}
		rest, below := strings.CutPrefix(point, l.to+"/")
		if below && slices.ContainsFunc(programDirs[l.name], func(start string) bool { return strings.HasPrefix(rest, start) }) {
			return l.name + "/" + rest
		}
	}
	return ""
}

// leftBehindLinks says what stays where links lead to: they are the user's, and so may be what else is
// there.
func (l Layout) leftBehindLinks(names []string) string {
	var left []string
	for _, name := range names {
		if to, err := os.Readlink(l.path(name)); err == nil {
			left = append(left, fmt.Sprintf("%s, where %s led to", to, name))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return "; not removed: " + strings.Join(left, ", ")
}
