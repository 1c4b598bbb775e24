package iptables

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program has what is run as iptables answer -C with code, and returns where it writes what it
// was run with.
func program(t *testing.T, code int) (ran func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s\ncase \"$*\" in *-C*) echo words; exit %d;; esac\n", log, code)
	if err := os.WriteFile(filepath.Join(dir, V4), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return func() string {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
}

// A rule is added if it is known not to be there, and not if that could not be found out.
func TestARuleIsNotAddedTwice(t *testing.T) {
	for _, test := range []struct {
		code  int
		added bool
		fails bool
	}{
		{code: 0},
		{code: 1, added: true},
		{code: 4, fails: true}, // the lock is held, or there are no rights
	} {
		ran := program(t, test.code)
		err := Ensure(t.Context(), V4, "filter", First, "INPUT", "-j", "X")
		if added := strings.Contains(ran(), "-w 5 -t filter -I INPUT -j X"); added != test.added || (err != nil) != test.fails {
			t.Errorf("-C exits with %d: added %v, error %v", test.code, added, err)
		}
		if test.fails && !strings.Contains(err.Error(), "words") {
			t.Errorf("the error is %v", err)
		}
	}
}
