package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kctl/proto/mountinfo"
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
		if to, is := l.linkAt(name); is {
			out = append(out, link{name, to})
		}
	}
	return out
}

// linkAt is where a link of that name in the directory leads to, if there is anything.
func (l Layout) linkAt(name string) (to string, is bool) {
	info, err := os.Lstat(l.path(name))
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		return "", false
	}
	to, err = filepath.EvalSymlinks(l.path(name))
	return to, err == nil
}

// leadsTo tells whether one of the links leads to a place.
func leadsTo(links []link, point string) bool {
	return slices.ContainsFunc(links, func(l link) bool { return l.to == point })
}

// behindLink is the path in the directory of a place that a link leads to; "" where programs don't mount.
func behindLink(links []link, point string) string {
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

// holdsOthers tells whether something is mounted in a mount that is not of programs, and would go with
// it. What was there before came along as a copy, and the original stays.
func holdsOthers(all mountinfo.Table, links []link, in mountinfo.Mount) bool {
	return slices.ContainsFunc(all, func(m mountinfo.Mount) bool {
		if !strings.HasPrefix(m.Point, in.Point+"/") || behindLink(links, m.Point) != "" {
			return false
		}
		return !slices.ContainsFunc(all, func(other mountinfo.Mount) bool {
			return other.ID != m.ID && other.Point == m.Point && other.Device == m.Device && other.Root == m.Root
		})
	})
}

// leftBehindLinks says what stays where links lead to: they are the user's, and so may be what else is
// there.
func (l Layout) leftBehindLinks(names []string) string {
	var left []string
	for _, name := range names {
		if to, is := l.linkAt(name); is {
			left = append(left, fmt.Sprintf("%s, where %s led to", to, name))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return "; not removed: " + strings.Join(left, ", ")
}
