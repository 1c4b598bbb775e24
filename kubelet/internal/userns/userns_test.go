package userns

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
)

func newManager(t *testing.T, dir string, places int64) *Manager {
	t.Helper()
	m, err := New(Options{PodsDir: dir, IDs: Range{First: block, Count: places * block}, PerPod: block, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func give(t *testing.T, m *Manager, pod string) Range {
	t.Helper()
	given, err := m.Allocate(types.UID(pod))
	if err != nil {
		t.Fatal(err)
	}
	return given
}

func TestIDsAreOnePodsAlone(t *testing.T) {
	m := newManager(t, t.TempDir(), 64)
	given := make([]Range, 64)
	var pods sync.WaitGroup
	for i := range given {
		pods.Go(func() { given[i] = give(t, m, fmt.Sprint("pod", i)) })
	}
	pods.Wait()
	for i, a := range given {
		if a.Count != block || a.First < block || a.First%block != 0 || a != give(t, m, fmt.Sprint("pod", i)) {
			t.Errorf("pod %d has %v", i, a)
		}
		for _, b := range given[:i] {
			if a.overlaps(b) {
				t.Errorf("%v and %v overlap", a, b)
			}
		}
	}
	if _, err := m.Allocate("one-more"); err == nil || !strings.Contains(err.Error(), "no ids are left") {
		t.Errorf("one more: %v", err)
	}
	if err := m.Release("pod7"); err != nil {
		t.Fatal(err)
	}
	if got := give(t, m, "one-more"); got != given[7] {
		t.Errorf("%v, want what was given back, %v", got, given[7])
	}
}

func TestIDsStayOverRestarts(t *testing.T) {
	dir := t.TempDir()
	m := newManager(t, dir, 8)
	a, b := give(t, m, "a"), give(t, m, "b")
	content, err := os.ReadFile(filepath.Join(dir, "b", "userns"))
	want := fmt.Sprintf(`{"uidMappings":[{"hostId":%d,"containerId":0,"length":65536}],"gidMappings":[{"hostId":%[1]d,"containerId":0,"length":65536}]}`, b.First)
	if err != nil || string(content) != want {
		t.Errorf("%s, %v; want upstream's form, %s", content, err, want)
	}
	m = newManager(t, dir, 8)
	if c := give(t, m, "c"); c.overlaps(a) || c.overlaps(b) || give(t, m, "b") != b {
		t.Errorf("after a restart: c has %v, b %v", c, give(t, m, "b"))
	}
	if err := m.Release("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "userns")); err == nil {
		t.Error("the file of ids that were given back is still there")
	}
	if err := m.Release("a"); err != nil {
		t.Errorf("given back twice: %v", err)
	}
}

func TestIDsAreNotSoonAnothers(t *testing.T) {
	m := newManager(t, t.TempDir(), 4)
	first := give(t, m, "a")
	if err := m.Release("a"); err != nil {
		t.Fatal(err)
	}
	if second := give(t, m, "b"); second == first {
		t.Errorf("b has what a gave back just now, %v", second)
	}
}

func TestTheLastIDsAreNobodys(t *testing.T) {
	m, err := New(Options{PodsDir: t.TempDir(), IDs: Range{First: 1<<32 - 2*block, Count: 2 * block}, PerPod: block, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	give(t, m, "a")
	if got, err := m.Allocate("b"); err == nil {
		t.Errorf("b has %v, up to the kernel's \"nobody\"", got)
	}
}

func TestFilesThatCantBeRead(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "hosts": `{"uidMappings":[{"hostId":0,"containerId":0,"length":65536}],"gidMappings":[{"hostId":0,"containerId":0,"length":65536}]}`,
		"two": `{"uidMappings":[{"hostId":65536,"length":1},{"hostId":131072,"length":1}],"gidMappings":[]}`, "not json": "{",
		"other groups": `{"uidMappings":[{"hostId":65536,"length":65536}],"gidMappings":[{"hostId":131072,"length":65536}]}`,
		"too far":      `{"uidMappings":[{"hostId":4294901760,"length":131072}],"gidMappings":[{"hostId":4294901760,"length":131072}]}`,
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a", "userns"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		m := newManager(t, dir, 4)
		if got, err := m.Allocate("a"); err == nil || !strings.Contains(err.Error(), "userns") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		give(t, m, "b") // others are not affected
	}
}

func TestGetsubidsIsRead(t *testing.T) {
	if got, err := parse("0: kubelet 65536 7208960\n"); err != nil || got != (Range{65536, 7208960}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "0: kubelet 65536 65536\n1: kubelet 262144 65536\n", "0: kubelet 65536", "0: kubelet x 1", "0: kubelet 65536 -1"} {
		if got, err := parse(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	program := filepath.Join(t.TempDir(), "getsubids")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"0: $1 131072 65536\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := getsubids(t.Context(), program, owner); err != nil || got != (Range{131072, 65536}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := getsubids(t.Context(), program+"-none", "-g", owner); err == nil || !strings.Contains(err.Error(), "-g kubelet") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestRangesAreChecked(t *testing.T) {
	if err := everything().Check(block, 110); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]struct {
		ids             Range
		perPod, maxPods int64
	}{
		"":                    {Range{block, 110 * block}, block, 110},
		"idsPerPod":           {everything(), 1000, 1},
		"idsPerPod: 0":        {everything(), 0, 1},
		"begin at 0":          {Range{0, block}, block, 1},
		"begin at 100000":     {Range{100000, block}, block, 1},
		"are 65537":           {Range{block, block + 1}, block, 1},
		"beyond 2^32":         {Range{1<<32 - block, 2 * block}, block, 1},
		"110 pods with 65536": {Range{block, 109 * block}, block, 110},
	} {
		err := c.ids.Check(c.perPod, c.maxPods)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
