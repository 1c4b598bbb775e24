package mountinfo

import (
	"slices"
	"strings"
	"testing"
)

const table = `1 0 8:1 / / rw shared:1 - ext4 /dev/a rw
2 1 8:2 / /var rw - ext4 /dev/b rw
3 2 8:3 / /var/a\040b rw master:3 shared:2 - ext4 /dev/c rw
4 2 8:4 / /over rw - ext4 /dev/d rw
5 4 0:5 / /over rw shared:4 - tmpfs my\040memory rw
`

func TestBelow(t *testing.T) {
	const table = `22 1 259:1 / / rw - ext4 /dev/root rw
30 22 0:30 / /p/a rw shared:1 - tmpfs tmpfs rw
31 30 0:31 / /p/a/x\040y rw - tmpfs tmpfs rw
32 22 0:32 / /p/ab rw - tmpfs tmpfs rw
broken
33 30 0:33 / /p/a/broken rw shared:1 too
34 30 0:34 / /p/a/broken rw shared:1 - tmpfs
`
	const odd = "35 30 259:1 /other\u3000blanks\r\u00a0\v /p/a/z rw shared:1 - ext4 /dev/root rw\n"
	for dir, want := range map[string][]string{
		"/p/a": {"/p/a/z", "/p/a/x y", "/p/a"},
		"/p/b": nil,
		"/":    {"/p/a/z", "/p/ab", "/p/a/x y", "/p/a", "/"},
	} {
		if got := parse(table + odd).Below(dir); !slices.Equal(got, want) {
			t.Errorf("below %s there are %q, want %q", dir, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		path, point string
		shared      bool
	}{
		{"/etc", "/", true},
		{"/", "/", true},
		{"/var", "/var", false},
		{"/variable", "/", true},
		{"/var/a b/c", "/var/a b", true},
		{"/var/a", "/var", false},
		{"/over/x", "/over", true},
	} {
		if m := parse(table).Of(c.path); m.Point != c.point || m.Shared != c.shared {
			t.Errorf("%s is in %s, shared: %v, want %s, %v", c.path, m.Point, m.Shared, c.point, c.shared)
		}
	}
	if m := (Table{}).Of("/etc"); m != (Mount{}) {
		t.Errorf("an empty table has %+v", m)
	}
}

func TestSourceOf(t *testing.T) {
	const odd = "6 1 0:6 /root\u3000\u00a0\v /odd rw shared:1 master:2 - ext4 /dev/e\u3000f rw\n7 1 0:7 / /none rw - tmpfs  rw\n"
	for device, want := range map[string]string{
		"8:1": "/dev/a", "0:5": "my memory", "0:6": "/dev/e\u3000f", "0:7": "", "9:9": "",
	} {
		if got := parse(table + odd).SourceOf(device); got != want {
			t.Errorf("%s holds %q, want %q", device, got, want)
		}
	}
}

func TestUnescape(t *testing.T) {
	if got := unescape(`a\134b\0`); got != `a\b\0` {
		t.Errorf("unescape = %q", got)
	}
	if strings.Contains(unescape(`\011`), `\`) {
		t.Error("a tab stays escaped")
	}
}
